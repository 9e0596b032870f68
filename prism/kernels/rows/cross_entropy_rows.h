// Cross-entropy of rows of logits; the gradient overwrites them.
#pragma once

#include <cmath>

#include "prism/kernels/rows/row_loop.h"
#include "prism/kernels/rows/rows.h"
#include "prism/kernels/simd/exp2.h"

namespace prism::rows {

/// Values whose exponentials are summed before they are added to the total: sums of partial sums lose fewer digits.
constexpr int64_t kSummed = 1024;

template <class Op, class Storage>
PRISM_FORCE_INLINE float value_at(const Storage* row, int64_t i) {
  return Op::sum(Op::load_units(row + i, 1));
}

/// e^(z - shift)
template <class Op>
PRISM_FORCE_INLINE typename Op::Vector exp_of(typename Op::Vector z, typename Op::Vector minus_shift) {
  return simd::exp2<Op>(Op::mul(Op::add(z, minus_shift), Op::set(simd::kLog2E)));
}

template <class Op, class Storage>
void cross_entropy_rows(const CrossEntropy& c, int64_t first, int64_t last) {
  for (int64_t row = first; row < last; ++row) {
    Storage* logits = static_cast<Storage*>(c.logits) + row * c.classes;
    const int64_t label = c.labels[row];
    if (label < 0) {
      c.losses[row] = 0;
      if (c.gradient) for_each_vector<Op>(c.classes, [&](auto part) { part.store(logits, Op::zero()); });
      continue;
    }
    auto top = Op::set(simd::kNoScore);
    // A partial vector would load zeros after the last logit, which must not become the maximum, so the rest is scalar.
    const int64_t whole = c.classes / Op::kLanes * Op::kLanes;
    for_each_vector<Op>(whole, [&](auto part) { top = Op::max(top, part.load(logits)); });
    float largest = Op::largest(top);
    for (int64_t i = whole; i < c.classes; ++i) {
      const float value = value_at<Op>(logits, i);
      largest = value > largest ? value : largest;
    }
    const auto shift = Op::set(-largest);
    auto sums = Op::zero();
    for (int64_t block = 0; block < whole; block += kSummed) {
      auto some = Op::zero();
      const int64_t left = whole - block;
      for_each_vector<Op>(left < kSummed ? left : kSummed,
                          [&](auto part) { some = Op::add(some, exp_of<Op>(part.load(logits + block), shift)); });
      sums = Op::add(sums, some);
    }
    float sum = Op::sum(sums);
    for (int64_t i = whole; i < c.classes; ++i) sum += ::expf(value_at<Op>(logits, i) - largest);
    const float own = value_at<Op>(logits, label) - largest;
    const float lse = largest + ::logf(sum);
    c.losses[row] = ::logf(sum) - own + c.lse_weight * lse * lse;
    if (!c.gradient) continue;
    const float pull = 1 + 2 * c.lse_weight * lse;
    const auto factor = Op::set(c.share * pull / sum);
    for_each_vector<Op>(c.classes,
                        [&](auto part) { part.store(logits, Op::mul(exp_of<Op>(part.load(logits), shift), factor)); });
    Op::store_units(logits + label, Op::set(c.share * (pull * ::expf(own) / sum - 1)), 1);
  }
}

}  // namespace prism::rows
