// Integer products of strips (decode.h) for AVX512-VNNI.
#pragma once

#include <cstdint>

#include "prism/kernels/packed/decode.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::packed {

struct IntsAvx512 : simd::Avx512 {
  /// Codes as unsigned bytes: eight times 16 rows of 4.
  struct Codes {
    __m512i units[8];
  };
  static constexpr int kStrips = 4;

  template <BlockType T>
  static PRISM_FORCE_INLINE void load(const uint8_t* codes, const uint64_t* fifths, Codes& to) {
    if constexpr (T == BlockType::q8_0) {
#pragma GCC unroll 8
      for (int i = 0; i < 8; ++i)  // signed to unsigned: + 128
        to.units[i] = _mm512_xor_si512(_mm512_loadu_si512(codes + i * 64), _mm512_set1_epi8(-128));
    } else {
      const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const __m512i both = _mm512_loadu_si512(codes + i * 64);
        to.units[i] = _mm512_and_si512(both, low);
        to.units[i + 4] = _mm512_and_si512(_mm512_srli_epi16(both, 4), low);
      }
      if constexpr (has_fifths(T)) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
          to.units[i] = _mm512_mask_add_epi8(to.units[i], _cvtu64_mask64(fifths[i]), to.units[i], _mm512_set1_epi8(16));
      }
    }
  }

  /// Of both halves of a block, the sum of codes less their zero_code(), times x's codes, of each row, as float32.
  /// @param code_sums  the sums of x's codes.
  template <BlockType T>
  static PRISM_FORCE_INLINE void dot(const Codes& w, const int8_t* x, const int32_t (&code_sums)[kHalves],
                                     Vector (&out)[kHalves][1]) {
    constexpr int kZero = T == BlockType::q8_0 ? 128 : zero_code(T);
    __m512i first = _mm512_set1_epi32(-kZero * code_sums[0]), second = _mm512_set1_epi32(-kZero * code_sums[1]);
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      first = _mm512_dpbusd_epi32(first, w.units[i], four_codes(x + 4 * i));
      second = _mm512_dpbusd_epi32(second, w.units[i + 4], four_codes(x + kHalf + 4 * i));
    }
    out[0][0] = _mm512_cvtepi32_ps(first);
    out[1][0] = _mm512_cvtepi32_ps(second);
  }

  template <class Storage>
  static PRISM_FORCE_INLINE void quantise(const Storage* x, int8_t* codes, BlockScale& scale) {
    static_assert(kHalf == kLanes);
#pragma GCC unroll 2
    for (int half = 0; half < kHalves; ++half) {
      const Vector values = Avx512::load(x + half * kHalf);
      // As integers, so that a NaN is the largest.
      const int32_t most =
          _mm512_reduce_max_epi32(_mm512_and_si512(_mm512_castps_si512(values), _mm512_set1_epi32(0x7FFFFFFF)));
      const Vector inverse = set(scale.begin(half, __builtin_bit_cast(float, most)));
      const __m512i rounded = _mm512_cvtps_epi32(max(mul(values, inverse), set(kLeastCode)));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + half * kHalf), _mm512_cvtsepi32_epi8(rounded));
      scale.end(half, _mm512_reduce_add_epi32(rounded));
    }
  }

 private:
  static PRISM_FORCE_INLINE int32_t unit(const void* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return bits;
  }
  static PRISM_FORCE_INLINE __m512i four_codes(const int8_t* x) {
    return _mm512_set1_epi32(unit(x));
  }
};

}  // namespace prism::packed
