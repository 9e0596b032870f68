// Unpacks strips to vectors (strips.h) for AVX-512.
#pragma once

#include <immintrin.h>

#include "prism/kernels/packed/packed.h"

namespace prism::packed {

/// @tparam Op  an operand type on vectors of AVX-512.
template <class Op>
struct UnpacksAvx512 : Op {
  using typename Op::Vector;

  /// Codes of columns 4 i to 4 i + 3 of a block, each of 16 rows.
  template <BlockType T>
  static PRISM_FORCE_INLINE void load_codes(const uint8_t* codes, const uint64_t* fifths, int i, int, Vector (&to)[4]) {
    if constexpr (T == BlockType::q8_0) {
      const __m512i bytes = _mm512_loadu_si512(codes + i * 64);
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        to[j] = _mm512_cvtepi32_ps(_mm512_srai_epi32(_mm512_slli_epi32(bytes, static_cast<unsigned>(24 - 8 * j)), 24));
    } else {
      const __m512i both = _mm512_loadu_si512(codes + i % 4 * 64);
      __m512i bytes = _mm512_and_si512(i < 4 ? both : _mm512_srli_epi16(both, 4), _mm512_set1_epi8(15));
      if constexpr (has_fifths(T))
        bytes = _mm512_mask_add_epi8(bytes, _cvtu64_mask64(fifths[i]), bytes, _mm512_set1_epi8(16));
#pragma GCC unroll 4
      for (int j = 0; j < 4; ++j)
        to[j] = _mm512_cvtepi32_ps(
            _mm512_and_si512(_mm512_srli_epi32(bytes, static_cast<unsigned>(8 * j)), _mm512_set1_epi32(255)));
    }
  }
};

}  // namespace prism::packed
