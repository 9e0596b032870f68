// Products of bfloat16 pairs in float32 (decode.h), for vectors of any width.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::packed {

template <class Vectors>
struct PairsInFloat32 {
  /// Two values, of one or of each row.
  struct Pair {
    typename Vectors::Vector values[2];
  };
  static constexpr int64_t kPairBytes = 8;

  static PRISM_FORCE_INLINE Pair load_pairs(const uint16_t* p) {
    Pair pair;
    Vectors::load_pair(p, pair.values);
    return pair;
  }
  static PRISM_FORCE_INLINE Pair broadcast_pair(const std::byte* p) {
    const auto* x = reinterpret_cast<const float*>(p);
    return {{Vectors::set(x[0]), Vectors::set(x[1])}};
  }
  static PRISM_FORCE_INLINE auto add_pairs(typename Vectors::Vector sum, const Pair& x, const Pair& w) {
    return Vectors::fma(x.values[1], w.values[1], Vectors::fma(x.values[0], w.values[0], sum));
  }
  template <class Storage>
  static PRISM_FORCE_INLINE void copy_pairs(const Storage* x, int64_t count, int64_t steps, std::byte* to) {
    auto* floats = reinterpret_cast<float*>(to);
    for (int64_t i = 0; i < steps * 2; i += Vectors::kLanes)
      Vectors::store(floats + i, Vectors::load_units(x + i, std::max<int64_t>(0, count - i)));
  }
};

}  // namespace prism::packed
