// Residual addition and RMSNorm, forward and backward.
#pragma once

#include <cmath>

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"

namespace prism::rows {

template <class Op, class Storage>
void norm_rows(const Norm& n, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * n.width;
    const float* s = n.x + at;
    auto squares = Op::zero();
    if (n.branch != nullptr) {
      const Storage* branch = static_cast<const Storage*>(n.branch) + at;
      float* sum = n.sum + at;
      for_each_vector<Op>(n.width, [&](auto part) {
        const auto value = Op::add(part.load(s), part.load(branch));
        part.store(sum, value);
        squares = Op::fma(value, value, squares);
      });
      s = sum;
    } else {
      for_each_vector<Op>(n.width, [&](auto part) {
        const auto value = part.load(s);
        squares = Op::fma(value, value, squares);
      });
    }
    const float inverse = 1 / ::sqrtf(Op::sum(squares) / static_cast<float>(n.width) + n.eps);
    n.inverse_rms[row] = inverse;
    Storage* y = static_cast<Storage*>(n.y) + at;
    const auto factor = Op::set(inverse);
    for_each_vector<Op>(n.width,
                        [&](auto part) { part.store(y, Op::mul(Op::mul(part.load(s), factor), part.load(n.weight))); });
  }
}

template <class Op, class Storage>
void norm_gradient_rows(const NormGradient& n, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    const int64_t at = row * n.width;
    const float* s = n.sum + at;
    const Storage* d_y = static_cast<const Storage*>(n.d_y) + at;
    auto dots = Op::zero();
    for_each_vector<Op>(
        n.width, [&](auto part) { dots = Op::fma(Op::mul(part.load(d_y), part.load(n.weight)), part.load(s), dots); });
    const float inverse = n.inverse_rms[row];
    const auto r = Op::set(inverse);
    const auto shared = Op::set(-Op::sum(dots) * inverse * inverse / static_cast<float>(n.width));
    const float* d_sum = n.d_sum == nullptr ? nullptr : n.d_sum + at;
    float* d_x = n.d_x + at;
    Storage* d_branch = n.d_branch == nullptr ? nullptr : static_cast<Storage*>(n.d_branch) + at;
    for_each_vector<Op>(n.width, [&](auto part) {
      const auto value = part.load(s), gradient = part.load(d_y);
      auto change = Op::mul(r, Op::fma(value, shared, Op::mul(gradient, part.load(n.weight))));
      if (d_sum != nullptr) change = Op::add(change, part.load(d_sum));
      part.store(d_x, change);
      if (d_branch != nullptr) part.store(d_branch, change);
      part.store(n.d_weight, Op::fma(Op::mul(gradient, r), value, part.load(n.d_weight)));
    });
  }
}

}  // namespace prism::rows
