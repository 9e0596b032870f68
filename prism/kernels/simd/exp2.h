// Vectorised 2^x, for softmax and sigmoid.
#pragma once

#include "prism/kernels/simd/force_inline.h"

namespace prism::simd {

constexpr float kLog2E = 1.44269504088896341f;
/// The score of a key that is not seen: 2^-inf = 0. Not from the standard library: a function of it that is not inlined
/// would be linked once for all instruction sets.
constexpr float kNoScore = -__builtin_huge_valf();

/// 2^x = 2^floor(x) p(x - floor(x)), for x up to 127. The relative error, including all rounding, is at most 2.7e-6
/// (degree 4) or 1.6e-7 (degree 5). 0 at -inf, NaN at NaN. The coefficients minimise the largest relative error of p.
template <class Op>
PRISM_FORCE_INLINE typename Op::Vector exp2(typename Op::Vector x) {
  const auto f = Op::fraction(x);
  typename Op::Vector p;
  if constexpr (Op::kExpDegree == 4) {
    p = Op::fma(Op::set(0x1.bb7cd4p-7f), f, Op::set(0x1.aa13fp-5f));
    p = Op::fma(p, f, Op::set(0x1.ee798ap-3f));
    p = Op::fma(p, f, Op::set(0x1.62d166p-1f));
    p = Op::fma(p, f, Op::set(0x1.00002cp+0f));
  } else {
    p = Op::fma(Op::set(0x1.ec320ap-10f), f, Op::set(0x1.26900cp-7f));
    p = Op::fma(p, f, Op::set(0x1.c95446p-5f));
    p = Op::fma(p, f, Op::set(0x1.ebd5a8p-3f));
    p = Op::fma(p, f, Op::set(0x1.62e4f6p-1f));
    p = Op::fma(p, f, Op::set(0x1.fffffep-1f));
  }
  return Op::scale(p, x);
}

}  // namespace prism::simd
