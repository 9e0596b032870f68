// Integer products of strips (decode.h) for AVX2.
#pragma once

#include <cstdint>

#include "prism/kernels/packed/decode.h"
#include "prism/kernels/simd/vector_avx2.h"

namespace prism::packed {

struct IntsAvx2 : simd::Avx2 {
  /// Codes as bytes, eight times 16 rows of 4: signed for Q8_0, else unsigned.
  struct Codes {
    __m256i units[8][2];
  };
  static constexpr int kStrips = 1, kMostRows = 4;

  template <BlockType T>
  static PRISM_FORCE_INLINE void load(const uint8_t* codes, const uint64_t* fifths, Codes& to) {
    const __m256i low = _mm256_set1_epi8(15);
#pragma GCC unroll 2
    for (int h = 0; h < 2; ++h) {
      const uint8_t* from = codes + h * 32;
      if constexpr (T == BlockType::q8_0) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i) to.units[i][h] = load_bytes(from + i * 64);
      } else {
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) {
          const __m256i both = load_bytes(from + i * 64);
          to.units[i][h] = _mm256_and_si256(both, low);
          to.units[i + 4][h] = _mm256_and_si256(_mm256_srli_epi16(both, 4), low);
        }
      }
      if constexpr (has_fifths(T)) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; ++i)
          to.units[i][h] = _mm256_or_si256(to.units[i][h], sixteens(static_cast<uint32_t>(fifths[i] >> (32 * h))));
      }
    }
  }

  /// The sums over block b of codes less their zero_code(), times the codes of x's rows from `row` on, as float32.
  template <BlockType T, int Rows>
  static PRISM_FORCE_INLINE void dot(const Codes& w, const QuantisedRows& x, int64_t row, int64_t b,
                                     Vector (&out)[Rows][2]) {
#pragma GCC unroll 8
    for (int r = 0; r < Rows; ++r)
#pragma GCC unroll 2
      for (int h = 0; h < 2; ++h) {
        const int8_t* codes = x.codes_of(row + r, b);
        const __m256i zeros = _mm256_set1_epi32(-zero_code(T) * x.scale_of(row + r, b).code_sum);
        const __m256i high = dot_part<T>(w, h, codes, 1 << kLowBits, zeros);
        out[r][h] = _mm256_cvtepi32_ps(dot_part<T>(w, h, codes + kBlock, 1, high));
      }
  }

  template <class Storage>
  static PRISM_FORCE_INLINE void quantise(const Storage* x, int8_t* codes, BlockScale& scale) {
    constexpr int kVectors = 4;
    static_assert(kBlock == kVectors * kLanes);
    Vector values[kVectors];
    __m256i most = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      values[i] = Avx2::load(x + i * kLanes);
      // As integers, so that a NaN is the largest.
      most = _mm256_max_epi32(most, _mm256_and_si256(_mm256_castps_si256(values[i]), _mm256_set1_epi32(0x7FFFFFFF)));
    }
    const Vector inverse = set(scale.begin(__builtin_bit_cast(
        float, reduce(most, [](__m128i a, __m128i b) PRISM_INLINE_LAMBDA { return _mm_max_epi32(a, b); }))));
    __m256i high[kVectors], low[kVectors], sum = _mm256_setzero_si256();
#pragma GCC unroll 4
    for (int i = 0; i < kVectors; ++i) {
      const __m256i rounded = _mm256_cvtps_epi32(max(mul(values[i], inverse), set(kLeastCode)));
      sum = _mm256_add_epi32(sum, rounded);
      high[i] = _mm256_srai_epi32(_mm256_add_epi32(rounded, _mm256_set1_epi32(1 << (kLowBits - 1))), kLowBits);
      low[i] = _mm256_sub_epi32(rounded, _mm256_slli_epi32(high[i], kLowBits));
    }
    store_codes(codes, high);
    store_codes(codes + kBlock, low);
    scale.end(reduce(sum, [](__m128i a, __m128i b) PRISM_INLINE_LAMBDA { return _mm_add_epi32(a, b); }));
  }

 private:
  /// Adds to `sum` the products of the codes of 8 rows of W with the parts `x` of x's codes, times `weight`.
  template <BlockType T>
  static PRISM_FORCE_INLINE __m256i dot_part(const Codes& w, int h, const int8_t* x, int16_t weight, __m256i sum) {
    // Sums of two products fit 16 bits: 2 x 128 x 127. With codes of at most 31, four of them do.
    constexpr int kTogether = T == BlockType::q8_0 ? 1 : 4;
#pragma GCC unroll 8
    for (int i = 0; i < 8; i += kTogether) {
      __m256i pairs = _mm256_setzero_si256();
#pragma GCC unroll 4
      for (int j = i; j < i + kTogether; ++j) {
        const __m256i codes = _mm256_set1_epi32(unit(x + 4 * j)), weights = w.units[j][h];
        pairs = _mm256_add_epi16(pairs, T == BlockType::q8_0 ? _mm256_maddubs_epi16(_mm256_abs_epi8(weights),
                                                                                    _mm256_sign_epi8(codes, weights))
                                                             : _mm256_maddubs_epi16(weights, codes));
      }
      sum = _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(weight)));
    }
    return sum;
  }
  static PRISM_FORCE_INLINE void store_codes(int8_t* to, const __m256i (&codes)[4]) {
    // Packing works on halves of vectors; the permutation restores the order.
    const __m256i packed =
        _mm256_packs_epi16(_mm256_packs_epi32(codes[0], codes[1]), _mm256_packs_epi32(codes[2], codes[3]));
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(to),
                        _mm256_permutevar8x32_epi32(packed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7)));
  }
  template <class Both>
  static PRISM_FORCE_INLINE int32_t reduce(__m256i v, const Both& both) {
    __m128i half = both(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
    half = both(half, _mm_shuffle_epi32(half, 0x4E));
    return _mm_cvtsi128_si32(both(half, _mm_shuffle_epi32(half, 0xB1)));
  }
  static PRISM_FORCE_INLINE __m256i load_bytes(const void* p) {
    return _mm256_loadu_si256(static_cast<const __m256i*>(p));
  }
  static PRISM_FORCE_INLINE int32_t unit(const void* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return bits;
  }
  /// 16 in each byte whose bit is set, else 0.
  static PRISM_FORCE_INLINE __m256i sixteens(uint32_t bits) {
    const __m256i spread =
        _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)),
                            _mm256_setr_epi64x(0, 0x0101010101010101, 0x0202020202020202, 0x0303030303030303));
    const __m256i own = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
    return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(spread, own), own), _mm256_set1_epi8(16));
  }
};

}  // namespace prism::packed
