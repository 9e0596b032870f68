// Unpacks strips to vectors (strips.h) for AVX2.
#pragma once

#include <immintrin.h>

#include "prism/kernels/packed/packed.h"

namespace prism::packed {

/// @tparam Op  an operand type on vectors of AVX2.
template <class Op>
struct UnpacksAvx2 : Op {
  using typename Op::Vector;

  /// Codes of columns 4 i to 4 i + 3 of a block, each of 8 rows.
  template <BlockType T>
  static PRISM_FORCE_INLINE void load_codes(const uint8_t* codes, const uint64_t* fifths, int i, int half,
                                            Vector (&to)[4]) {
    const uint8_t* from = codes + (T == BlockType::q8_0 ? i : i % 4) * 64 + half * 32;
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(from));
#pragma GCC unroll 4
    for (int j = 0; j < 4; ++j) {
      if constexpr (T == BlockType::q8_0) {
        to[j] = _mm256_cvtepi32_ps(_mm256_srai_epi32(_mm256_slli_epi32(bytes, 24 - 8 * j), 24));
      } else {
        __m256i code = _mm256_and_si256(_mm256_srli_epi32(bytes, 8 * j + (i < 4 ? 0 : 4)), _mm256_set1_epi32(15));
        if constexpr (has_fifths(T)) {
          // Bit 4 r + j is that of row r.
          const __m256i bits = _mm256_set1_epi32(static_cast<int>(static_cast<uint32_t>(fifths[i] >> (32 * half))));
          const __m256i own =
              _mm256_srlv_epi32(bits, _mm256_setr_epi32(j, 4 + j, 8 + j, 12 + j, 16 + j, 20 + j, 24 + j, 28 + j));
          code = _mm256_or_si256(code, _mm256_slli_epi32(_mm256_and_si256(own, _mm256_set1_epi32(1)), 4));
        }
        to[j] = _mm256_cvtepi32_ps(code);
      }
    }
  }
};

}  // namespace prism::packed
