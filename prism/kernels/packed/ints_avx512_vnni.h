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
  static constexpr int kStrips = 4, kMostRows = 8;

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

  /// The sums over block b of codes less their zero_code(), times the codes of x's rows from `row` on, as float32.
  template <BlockType T, int Rows>
  static PRISM_FORCE_INLINE void dot(const Codes& w, const QuantisedRows& x, int64_t row, int64_t b,
                                     Vector (&out)[Rows][1]) {
    constexpr int kZero = T == BlockType::q8_0 ? 128 : zero_code(T);
    // A sum waits for the one before it; a row alone has too few of them to keep the processor busy.
    constexpr int kSums = Rows == 1 ? 2 : 1;
    __m512i high[Rows][kSums] = {}, low[Rows][kSums] = {};
#pragma GCC unroll 8
    for (int r = 0; kZero != 0 && r < Rows; ++r)
      low[r][0] = _mm512_set1_epi32(-kZero * x.scale_of(row + r, b).code_sum);
#pragma GCC unroll 8
    for (int i = 0; i < 8; ++i)
#pragma GCC unroll 8
      for (int r = 0; r < Rows; ++r) {
        const int8_t* codes = x.codes_of(row + r, b) + 4 * i;
        auto &high_sum = high[r][i % kSums], &low_sum = low[r][i % kSums];
        high_sum = _mm512_dpbusd_epi32(high_sum, w.units[i], four_codes(codes));
        low_sum = _mm512_dpbusd_epi32(low_sum, w.units[i], four_codes(codes + kBlock));
      }
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r) {
      if constexpr (kSums == 2) {
        high[r][0] = _mm512_add_epi32(high[r][0], high[r][1]);
        low[r][0] = _mm512_add_epi32(low[r][0], low[r][1]);
      }
      out[r][0] = _mm512_cvtepi32_ps(_mm512_add_epi32(_mm512_slli_epi32(high[r][0], kLowBits), low[r][0]));
    }
  }

  template <class Storage>
  static PRISM_FORCE_INLINE void quantise(const Storage* x, int8_t* codes, BlockScale& scale) {
    static_assert(kBlock == 2 * kLanes);
    const Vector values[2] = {Avx512::load(x), Avx512::load(x + kLanes)};
    // As integers, so that a NaN is the largest.
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    const int32_t most =
        _mm512_reduce_max_epi32(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(values[0]), magnitude),
                                                 _mm512_and_si512(_mm512_castps_si512(values[1]), magnitude)));
    const Vector inverse = set(scale.begin(__builtin_bit_cast(float, most)));
    __m512i rounded[2];
#pragma GCC unroll 2
    for (int i = 0; i < 2; ++i) {
      rounded[i] = _mm512_cvtps_epi32(max(mul(values[i], inverse), set(kLeastCode)));
      const __m512i high =
          _mm512_srai_epi32(_mm512_add_epi32(rounded[i], _mm512_set1_epi32(1 << (kLowBits - 1))), kLowBits);
      const __m512i low = _mm512_sub_epi32(rounded[i], _mm512_slli_epi32(high, kLowBits));
      store_codes(codes + i * kLanes, high);
      store_codes(codes + kBlock + i * kLanes, low);
    }
    scale.end(_mm512_reduce_add_epi32(_mm512_add_epi32(rounded[0], rounded[1])));
  }

 private:
  static PRISM_FORCE_INLINE int32_t unit(const void* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return bits;
  }
  static PRISM_FORCE_INLINE void store_codes(int8_t* to, __m512i codes) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(to), _mm512_cvtepi32_epi8(codes));
  }
  static PRISM_FORCE_INLINE __m512i four_codes(const int8_t* x) {
    return _mm512_set1_epi32(unit(x));
  }
};

}  // namespace prism::packed
