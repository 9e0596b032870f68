// Vectors of eight float32 for prism's kernels, for AVX2 with FMA and F16C.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::simd {

struct Avx2 {
  using Vector = __m256;
  static constexpr int kLanes = 8;
  static constexpr int kTileRows = 6, kTileColumns = 2;  ///< 12 sums, 2 operands, 1 broadcast: 15 of 16 registers
  static constexpr int kSums = 12;

  static PRISM_FORCE_INLINE Vector zero() { return _mm256_setzero_ps(); }
  static PRISM_FORCE_INLINE Vector set(float x) { return _mm256_set1_ps(x); }
  static PRISM_FORCE_INLINE Vector load(const float* p) { return _mm256_loadu_ps(p); }
  static PRISM_FORCE_INLINE void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
  static PRISM_FORCE_INLINE Vector load(const uint16_t* p) {
    return widen(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  static PRISM_FORCE_INLINE void store(uint16_t* p, Vector x) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(p), narrow(x));
  }
  static PRISM_FORCE_INLINE Vector load_f16(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
  }
  /// 8 pairs of bfloat16 as their first and their second values.
  static PRISM_FORCE_INLINE void load_pair(const uint16_t* p, Vector (&to)[2]) {
    const __m256i units = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
    to[0] = _mm256_castsi256_ps(_mm256_slli_epi32(units, 16));
    to[1] = _mm256_castsi256_ps(_mm256_and_si256(units, _mm256_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }
  /// The reverse: the values of pairs, one after the other.
  static PRISM_FORCE_INLINE void join_pair(const Vector (&from)[2], Vector (&to)[2]) {
    const Vector low = _mm256_unpacklo_ps(from[0], from[1]), high = _mm256_unpackhi_ps(from[0], from[1]);
    to[0] = _mm256_permute2f128_ps(low, high, 0x20);
    to[1] = _mm256_permute2f128_ps(low, high, 0x31);
  }
  static PRISM_FORCE_INLINE Vector add(Vector a, Vector b) { return _mm256_add_ps(a, b); }
  static PRISM_FORCE_INLINE Vector div(Vector a, Vector b) { return _mm256_div_ps(a, b); }
  static PRISM_FORCE_INLINE Vector mul(Vector a, Vector b) { return _mm256_mul_ps(a, b); }
  static PRISM_FORCE_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm256_fmadd_ps(a, b, c); }
  static PRISM_FORCE_INLINE Vector max(Vector a, Vector b) { return _mm256_max_ps(a, b); }
  /// x where y > 0 or y is NaN, else 0.
  static PRISM_FORCE_INLINE Vector where_positive(Vector y, Vector x) {
    return _mm256_and_ps(_mm256_cmp_ps(y, zero(), _CMP_NLE_UQ), x);
  }
  static PRISM_FORCE_INLINE float sum(Vector x) {
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
  }
  static PRISM_FORCE_INLINE float largest(Vector x) {
    __m128 half = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_max_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_max_ss(half, _mm_movehdup_ps(half)));
  }

  /// 2^floor(x) p for x up to 127; 0 below -149. Uses two factors, each a normal number.
  static PRISM_FORCE_INLINE Vector scale(Vector p, Vector x) {
    const __m256i n = _mm256_cvtps_epi32(_mm256_floor_ps(bounded(x))), half = _mm256_srai_epi32(n, 1);
    return mul(mul(p, power(half)), power(_mm256_sub_epi32(n, half)));
  }
  /// x - floor(x); 0 at x = -inf.
  static PRISM_FORCE_INLINE Vector fraction(Vector x) {
    const Vector b = bounded(x);
    return _mm256_sub_ps(b, _mm256_floor_ps(b));
  }

  static PRISM_FORCE_INLINE Vector load_units(const float* p, int64_t count) {
    return count >= kLanes ? load(p) : _mm256_maskload_ps(p, mask(count));
  }
  static PRISM_FORCE_INLINE Vector load_units(const uint16_t* p, int64_t count) {
    if (count >= kLanes) return load(p);
    alignas(16) uint16_t some[kLanes] = {};
    for (int64_t i = 0; i < count; ++i) some[i] = p[i];
    return widen(_mm_load_si128(reinterpret_cast<const __m128i*>(some)));
  }
  static PRISM_FORCE_INLINE Vector load_units(const int8_t* p, int64_t count) {
    int64_t bytes = 0;
    if (count >= kLanes) {
      __builtin_memcpy(&bytes, p, sizeof bytes);
    } else {
      for (int64_t i = 0; i < count; ++i) bytes |= int64_t{static_cast<uint8_t>(p[i])} << (8 * i);
    }
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(bytes)));
  }
  static PRISM_FORCE_INLINE void store_units(float* p, Vector x, int64_t count) {
    count >= kLanes ? store(p, x) : _mm256_maskstore_ps(p, mask(count), x);
  }
  static PRISM_FORCE_INLINE void store_units(uint16_t* p, Vector x, int64_t count) {
    if (count >= kLanes) return store(p, x);
    alignas(16) uint16_t all[kLanes];
    store(all, x);
    for (int64_t i = 0; i < count; ++i) p[i] = all[i];
  }

  static PRISM_FORCE_INLINE void transpose(Vector (&rows)[kLanes]) {
    Vector t[8], u[8];
    for (int i = 0; i < 8; i += 2) {
      t[i] = _mm256_unpacklo_ps(rows[i], rows[i + 1]);
      t[i + 1] = _mm256_unpackhi_ps(rows[i], rows[i + 1]);
    }
    for (int i = 0; i < 8; i += 4) {
      u[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
      u[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xEE);
      u[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
      u[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
      rows[i] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x20);
      rows[i + 4] = _mm256_permute2f128_ps(u[i], u[i + 4], 0x31);
    }
  }

  /// The sum of each row, in row order.
  static PRISM_FORCE_INLINE Vector sum_rows(const Vector (&rows)[kLanes]) {
    return reduce_rows(rows, [](Vector a, Vector b) PRISM_INLINE_LAMBDA { return add(a, b); });
  }
  /// The largest value of each row, in row order.
  static PRISM_FORCE_INLINE Vector largest_rows(const Vector (&rows)[kLanes]) {
    return reduce_rows(rows, [](Vector a, Vector b) PRISM_INLINE_LAMBDA { return max(a, b); });
  }

 private:
  template <class Combine>
  static PRISM_FORCE_INLINE Vector reduce_rows(const Vector (&rows)[kLanes], const Combine& combine) {
    Vector fours[2];
    for (int i = 0; i < 2; ++i) {
      const Vector* r = rows + 4 * i;
      const Vector a = combine(_mm256_unpacklo_ps(r[0], r[1]), _mm256_unpackhi_ps(r[0], r[1]));
      const Vector b = combine(_mm256_unpacklo_ps(r[2], r[3]), _mm256_unpackhi_ps(r[2], r[3]));
      fours[i] = combine(_mm256_shuffle_ps(a, b, 0x44), _mm256_shuffle_ps(a, b, 0xEE));
    }
    return combine(_mm256_permute2f128_ps(fours[0], fours[1], 0x20), _mm256_permute2f128_ps(fours[0], fours[1], 0x31));
  }
  /// max returns its second operand if one is NaN, so a NaN stays.
  static PRISM_FORCE_INLINE Vector bounded(Vector x) { return _mm256_max_ps(_mm256_set1_ps(-150.0f), x); }
  static PRISM_FORCE_INLINE Vector power(__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  }
  static PRISM_FORCE_INLINE Vector widen(__m128i x) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
  }
  /// Rounds to the nearest bfloat16, ties to even; a NaN stays NaN.
  static PRISM_FORCE_INLINE __m128i narrow(Vector x) {
    const __m256i bits = _mm256_castps_si256(x);
    const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
    const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
    const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
    const __m256 nan = _mm256_cmp_ps(x, x, _CMP_UNORD_Q);
    const __m256i high = _mm256_srli_epi32(
        _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(rounded), _mm256_castsi256_ps(quiet), nan)), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(high), _mm256_extracti128_si256(high, 1));
  }
  static PRISM_FORCE_INLINE __m256i mask(int64_t count) {
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  }
};

}  // namespace prism::simd
