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

  /// The sum of codes less their zero_code(), times x's codes, of each row, as float32.
  /// @param code_sum  the sum of x's codes.
  template <BlockType T>
  static PRISM_FORCE_INLINE void dot(const Codes& w, const int8_t* x, int32_t code_sum, Vector (&out)[1]) {
    constexpr int kZero = T == BlockType::q8_0 ? 128 : zero_code(T);
    __m512i even = _mm512_set1_epi32(-kZero * code_sum), odd = _mm512_setzero_si512();
#pragma GCC unroll 4
    for (int i = 0; i < 4; ++i) {
      even = _mm512_dpbusd_epi32(even, w.units[2 * i], four_codes(x + 8 * i));
      odd = _mm512_dpbusd_epi32(odd, w.units[2 * i + 1], four_codes(x + 8 * i + 4));
    }
    out[0] = _mm512_cvtepi32_ps(_mm512_add_epi32(even, odd));
  }

  template <class Storage>
  static PRISM_FORCE_INLINE void quantise(const Storage* x, int8_t* codes, BlockScale& scale) {
    const Vector low = Avx512::load(x), high = Avx512::load(x + kLanes);
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    // As integers, so that a NaN is the largest.
    const int32_t most = _mm512_reduce_max_epi32(_mm512_max_epi32(
        _mm512_and_si512(_mm512_castps_si512(low), magnitude), _mm512_and_si512(_mm512_castps_si512(high), magnitude)));
    const Vector inverse = set(begin_scale(__builtin_bit_cast(float, most), scale));
    const Vector least = set(kLeastCode);
    const __m512i first = _mm512_cvtps_epi32(max(mul(low, inverse), least)),
                  second = _mm512_cvtps_epi32(max(mul(high, inverse), least));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes), _mm512_cvtsepi32_epi8(first));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(codes + kLanes), _mm512_cvtsepi32_epi8(second));
    end_scale(_mm512_reduce_add_epi32(_mm512_add_epi32(first, second)), scale);
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
