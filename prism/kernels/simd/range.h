// Half-open ranges of rows, columns or keys, and rounding to multiples.
#pragma once

#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::simd {

struct Range {
  int64_t first = 0, end = 0;

  PRISM_FORCE_INLINE int64_t size() const { return end - first; }
  PRISM_FORCE_INLINE bool empty() const { return first >= end; }
  /// Grows to the smallest range that holds both; an empty `more` adds nothing.
  PRISM_FORCE_INLINE void join(const Range& more) {
    if (more.empty()) return;
    first = empty() || more.first < first ? more.first : first;
    end = more.end > end ? more.end : end;
  }
};

constexpr int64_t kLineBytes = 64;  ///< bytes of a cache line

PRISM_FORCE_INLINE constexpr int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

/// The smallest multiple of b that is at least a.
PRISM_FORCE_INLINE constexpr int64_t round_up(int64_t a, int64_t b) {
  return divide_up(a, b) * b;
}

}  // namespace prism::simd
