// Online softmax of scores that arrive tile by tile. It keeps each row's largest score and sum of weights, and scales
// earlier sums down when a larger score arrives.
#pragma once

#include <cstdint>
#include <type_traits>

#include "prism/kernels/simd/exp2.h"
#include "prism/kernels/simd/force_inline.h"

namespace prism::flash {

/// Hides all scores of a row except [begin, end), which may extend beyond the row.
PRISM_FORCE_INLINE void hide_scores(float* scores, int64_t width, int64_t begin, int64_t end) {
  for (int64_t i = 0; i < begin && i < width; ++i) scores[i] = simd::kNoScore;
  for (int64_t i = end > 0 ? end : 0; i < width; ++i) scores[i] = simd::kNoScore;
}

/// The largest score of a row in each lane. @param width  a multiple of 2 kLanes.
template <class Op>
PRISM_FORCE_INLINE typename Op::Vector largest_lanes(const float* scores, int64_t width) {
  auto a = Op::set(simd::kNoScore), b = a;
  for (int64_t i = 0; i < width; i += 2 * Op::kLanes) {
    a = Op::max(a, Op::load(scores + i));
    b = Op::max(b, Op::load(scores + i + Op::kLanes));
  }
  return Op::max(a, b);
}

/// Returns true if any score is NaN, which a maximum may miss. @param width  a multiple of kLanes.
template <class Op>
PRISM_FORCE_INLINE bool has_nan(const float* scores, int64_t width) {
  const auto least = Op::set(-__FLT_MAX__);
  auto zeros = Op::zero();
  // If an operand is NaN, max returns its second operand; kNoScore becomes a finite value.
  for (int64_t i = 0; i < width; i += Op::kLanes)
    zeros = Op::fma(Op::max(least, Op::load(scores + i)), Op::zero(), zeros);
  return !(Op::sum(zeros) == 0);
}

/// Computes weights = 2^(c (s - largest)) from a row's scores s. @param width  a multiple of 2 kLanes.
/// @param weights  elements or float32; float32 may take the place of the scores.
/// @return  their sum in each lane.
template <class Op, class Weight>
PRISM_FORCE_INLINE typename Op::Vector weigh_scores(const float* scores, int64_t width, float largest, float c,
                                                    Weight* weights) {
  // The largest score is subtracted before anything is rounded, so its own weight is exactly 1.
  const auto factor = Op::set(c), shift = Op::set(largest == simd::kNoScore ? 0.0f : -largest);
  auto sum_a = Op::zero(), sum_b = Op::zero();
  for (int64_t i = 0; i < width; i += 2 * Op::kLanes) {
    const auto a = simd::exp2<Op>(Op::mul(Op::add(Op::load(scores + i), shift), factor));
    const auto b = simd::exp2<Op>(Op::mul(Op::add(Op::load(scores + i + Op::kLanes), shift), factor));
    sum_a = Op::add(sum_a, a);
    sum_b = Op::add(sum_b, b);
    if constexpr (std::is_same_v<Weight, float>) {
      Op::store(weights + i, a);
      Op::store(weights + i + Op::kLanes, b);
    } else {
      Op::store_elements(weights + i, a, b);
    }
  }
  return Op::add(sum_a, sum_b);
}

}  // namespace prism::flash
