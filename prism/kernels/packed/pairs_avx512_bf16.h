// Products of bfloat16 pairs (decode.h) for AVX512-BF16.
#pragma once

#include <algorithm>
#include <cstring>

#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::packed {

struct PairsInBfloat16 {
  using Op = simd::PairsOfBfloat16;
  using Pair = Op::Vector;
  static constexpr int64_t kPairBytes = 4;

  static PRISM_FORCE_INLINE Pair load_pairs(const uint16_t* p) { return Op::load_step(p); }
  static PRISM_FORCE_INLINE Pair broadcast_pair(const std::byte* p) {
    return Op::broadcast(reinterpret_cast<const uint16_t*>(p));
  }
  static PRISM_FORCE_INLINE Op::Vector add_pairs(Op::Vector sum, Pair x, Pair w) { return Op::step(sum, x, w); }
  static PRISM_FORCE_INLINE void copy_pairs(const uint16_t* x, int64_t count, int64_t steps, std::byte* to) {
    std::memcpy(to, x, static_cast<size_t>(count) * 2);
    std::memset(to + count * 2, 0, static_cast<size_t>(steps * 2 - count) * 2);
  }
  static PRISM_FORCE_INLINE void copy_pairs(const float* x, int64_t count, int64_t steps, std::byte* to) {
    auto* halves = reinterpret_cast<uint16_t*>(to);
    for (int64_t i = 0; i < steps * 2; i += Op::kLanes)
      Op::store_units(halves + i, Op::load_units(x + i, std::max<int64_t>(0, count - i)), Op::kLanes);
  }
};

}  // namespace prism::packed
