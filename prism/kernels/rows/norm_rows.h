// Residual addition and norm (RMSNorm or LayerNorm), forward and backward.
#pragma once

#include <cmath>

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"

namespace prism::rows {

/// @tparam kLayer  LayerNorm, else RMSNorm, which has no mean.
template <bool kLayer, class Op, class Storage>
PRISM_FORCE_INLINE void norm_row(const Norm& n, int64_t row) {
  const int64_t at = row * n.width;
  const float* s = n.x + at;
  auto total = Op::zero(), squares = Op::zero();
  const auto count = [&](typename Op::Vector value) {
    if constexpr (kLayer)
      total = Op::add(total, value);
    else
      squares = Op::fma(value, value, squares);
  };
  if (n.branch != nullptr) {
    const Storage* branch = static_cast<const Storage*>(n.branch) + at;
    float* sum = n.sum + at;
    for_each_vector<Op>(n.width, [&](auto part) {
      const auto value = Op::add(part.load(s), part.load(branch));
      part.store(sum, value);
      count(value);
    });
    s = sum;
  } else {
    for_each_vector<Op>(n.width, [&](auto part) { count(part.load(s)); });
  }
  float mean = 0;
  if constexpr (kLayer) {
    mean = Op::sum(total) / static_cast<float>(n.width);
    n.mean[row] = mean;
    for_each_vector<Op>(n.width, [&](auto part) {
      const auto value = part.inside(Op::add(part.load(s), Op::set(-mean)));
      squares = Op::fma(value, value, squares);
    });
  }
  const float inverse = 1 / ::sqrtf(Op::sum(squares) / static_cast<float>(n.width) + n.eps);
  if (n.inverse != nullptr) n.inverse[row] = inverse;
  Storage* y = static_cast<Storage*>(n.y) + at;
  float* unrounded = n.unrounded == nullptr ? nullptr : n.unrounded + at;
  const auto factor = Op::set(inverse), centre = Op::set(-mean);
  for_each_vector<Op>(n.width, [&](auto part) {
    auto value = part.load(s);
    if constexpr (kLayer) value = Op::add(value, centre);
    value = Op::mul(Op::mul(value, factor), part.load(n.weight));
    if (n.bias != nullptr) value = Op::add(value, part.load(n.bias));
    part.store(y, value);
    if (unrounded != nullptr) part.store(unrounded, value);
  });
}

template <class Op, class Storage>
void norm_rows(const Norm& n, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row)
    n.mean == nullptr ? norm_row<false, Op, Storage>(n, row) : norm_row<true, Op, Storage>(n, row);
}

/// @tparam kLayer  as in norm_row().
template <bool kLayer, class Op, class Storage>
PRISM_FORCE_INLINE void norm_gradient_row(const NormGradient& n, int64_t row) {
  const int64_t at = row * n.width;
  const float* s = n.sum + at;
  const Storage* d_y = static_cast<const Storage*>(n.d_y) + at;
  const float* d_unrounded = n.d_unrounded == nullptr ? nullptr : n.d_unrounded + at;
  const auto centre = Op::set(kLayer ? -n.mean[row] : 0);
  const auto centred = [&](auto part) {
    const auto value = part.load(s);
    return kLayer ? Op::add(value, centre) : value;
  };
  const auto gradient_of = [&](auto part) {
    const auto gradient = part.load(d_y);
    return d_unrounded == nullptr ? gradient : Op::add(gradient, part.load(d_unrounded));
  };
  auto dots = Op::zero(), total = Op::zero();
  for_each_vector<Op>(n.width, [&](auto part) {
    const auto scaled = Op::mul(gradient_of(part), part.load(n.weight));  // 0 beyond the row's end
    dots = Op::fma(scaled, centred(part), dots);
    if constexpr (kLayer) total = Op::add(total, scaled);
  });
  const auto width = static_cast<float>(n.width);
  const float inverse = n.inverse[row];
  const auto r = Op::set(inverse);
  const auto shared = Op::set(-Op::sum(dots) * inverse * inverse / width);
  const auto mean = Op::set(kLayer ? -Op::sum(total) / width : 0);
  const float* d_sum = n.d_sum == nullptr ? nullptr : n.d_sum + at;
  float* d_x = n.d_x + at;
  Storage* d_branch = n.d_branch == nullptr ? nullptr : static_cast<Storage*>(n.d_branch) + at;
  for_each_vector<Op>(n.width, [&](auto part) {
    const auto value = centred(part), gradient = gradient_of(part);
    auto inner = Op::fma(value, shared, Op::mul(gradient, part.load(n.weight)));
    if constexpr (kLayer) inner = Op::add(inner, mean);
    auto change = Op::mul(r, inner);
    if (d_sum != nullptr) change = Op::add(change, part.load(d_sum));
    part.store(d_x, change);
    if (d_branch != nullptr) part.store(d_branch, change);
    part.store(n.d_weight, Op::fma(Op::mul(gradient, r), value, part.load(n.d_weight)));
    if (n.d_bias != nullptr) part.store(n.d_bias, Op::add(gradient, part.load(n.d_bias)));
  });
}

template <class Op, class Storage>
void norm_gradient_rows(const NormGradient& n, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row)
    n.mean == nullptr ? norm_gradient_row<false, Op, Storage>(n, row) : norm_gradient_row<true, Op, Storage>(n, row);
}

}  // namespace prism::rows
