// Vectors of sixteen float32 for prism's kernels, for AVX-512.
#pragma once

#include <immintrin.h>

#include <cstdint>

#include "prism/kernels/simd/force_inline.h"

namespace prism::simd {

struct Avx512 {
  using Vector = __m512;
  static constexpr int kLanes = 16;
  static constexpr int kTileRows = 6, kTileColumns = 4;  ///< 24 sums, 4 operands, 1 broadcast: 29 of 32 registers
  static constexpr int kSums = 24;

  static PRISM_FORCE_INLINE Vector zero() { return _mm512_setzero_ps(); }
  static PRISM_FORCE_INLINE Vector set(float x) { return _mm512_set1_ps(x); }
  static PRISM_FORCE_INLINE Vector load(const float* p) { return _mm512_loadu_ps(p); }
  static PRISM_FORCE_INLINE void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
  static PRISM_FORCE_INLINE Vector load(const uint16_t* p) {
    return widen(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  static PRISM_FORCE_INLINE void store(uint16_t* p, Vector x) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), narrow(x));
  }
  static PRISM_FORCE_INLINE Vector load_f16(const uint16_t* p) {
    return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
  }
  /// 16 pairs of bfloat16 as their first and their second values.
  static PRISM_FORCE_INLINE void load_pair(const uint16_t* p, Vector (&to)[2]) {
    const __m512i units = _mm512_loadu_si512(p);
    to[0] = _mm512_castsi512_ps(_mm512_slli_epi32(units, 16));
    to[1] = _mm512_castsi512_ps(_mm512_and_si512(units, _mm512_set1_epi32(static_cast<int>(0xFFFF0000u))));
  }
  /// The reverse: the values of pairs, one after the other.
  static PRISM_FORCE_INLINE void join_pair(const Vector (&from)[2], Vector (&to)[2]) {
    const __m512i low = _mm512_set_epi32(23, 7, 22, 6, 21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    to[0] = _mm512_permutex2var_ps(from[0], low, from[1]);
    to[1] = _mm512_permutex2var_ps(from[0], _mm512_add_epi32(low, _mm512_set1_epi32(8)), from[1]);
  }
  static PRISM_FORCE_INLINE Vector add(Vector a, Vector b) { return _mm512_add_ps(a, b); }
  static PRISM_FORCE_INLINE Vector div(Vector a, Vector b) { return _mm512_div_ps(a, b); }
  static PRISM_FORCE_INLINE Vector mul(Vector a, Vector b) { return _mm512_mul_ps(a, b); }
  static PRISM_FORCE_INLINE Vector fma(Vector a, Vector b, Vector c) { return _mm512_fmadd_ps(a, b, c); }
  static PRISM_FORCE_INLINE Vector max(Vector a, Vector b) { return _mm512_max_ps(a, b); }
  /// x where y > 0 or y is NaN, else 0.
  static PRISM_FORCE_INLINE Vector where_positive(Vector y, Vector x) {
    return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(y, zero(), _CMP_NLE_UQ), x);
  }
  static PRISM_FORCE_INLINE float sum(Vector x) { return _mm512_reduce_add_ps(x); }
  static PRISM_FORCE_INLINE float largest(Vector x) { return _mm512_reduce_max_ps(x); }

  /// 2^floor(x) p, exact except for the rounding of tiny results; 0 at x = -inf.
  static PRISM_FORCE_INLINE Vector scale(Vector p, Vector x) { return _mm512_scalef_ps(p, x); }
  /// x - floor(x); 0 at x = -inf.
  static PRISM_FORCE_INLINE Vector fraction(Vector x) { return _mm512_reduce_ps(x, 0x09); }

  /// Loads the first `count` of sixteen float32; the others are 0.
  static PRISM_FORCE_INLINE Vector load_units(const float* p, int64_t count) {
    return _mm512_maskz_loadu_ps(mask(count), p);
  }
  /// Loads single bfloat16 values, widened.
  static PRISM_FORCE_INLINE Vector load_units(const uint16_t* p, int64_t count) {
    return widen(_mm256_maskz_loadu_epi16(mask(count), p));
  }
  /// Loads int8 values, widened.
  static PRISM_FORCE_INLINE Vector load_units(const int8_t* p, int64_t count) {
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_maskz_loadu_epi8(mask(count), p)));
  }
  // Whole vectors are stored without a mask: a masked store of 16-bit elements takes tens of cycles on Zen 4.
  static PRISM_FORCE_INLINE void store_units(float* p, Vector x, int64_t count) {
    if (count >= kLanes) return store(p, x);
    _mm512_mask_storeu_ps(p, mask(count), x);
  }
  static PRISM_FORCE_INLINE void store_units(uint16_t* p, Vector x, int64_t count) {
    if (count >= kLanes) return store(p, x);
    _mm256_mask_storeu_epi16(p, mask(count), narrow(x));
  }

  /// Turns rows into columns.
  static PRISM_FORCE_INLINE void transpose(Vector (&rows)[kLanes]) {
    Vector t[16];
    for (int i = 0; i < 16; i += 4) {
      const Vector a = _mm512_unpacklo_ps(rows[i], rows[i + 1]), b = _mm512_unpackhi_ps(rows[i], rows[i + 1]);
      const Vector c = _mm512_unpacklo_ps(rows[i + 2], rows[i + 3]), d = _mm512_unpackhi_ps(rows[i + 2], rows[i + 3]);
      t[i] = _mm512_shuffle_ps(a, c, 0x44);
      t[i + 1] = _mm512_shuffle_ps(a, c, 0xEE);
      t[i + 2] = _mm512_shuffle_ps(b, d, 0x44);
      t[i + 3] = _mm512_shuffle_ps(b, d, 0xEE);
    }
    for (int i = 0; i < 4; ++i) {
      const Vector a = _mm512_shuffle_f32x4(t[i], t[i + 4], 0x88), b = _mm512_shuffle_f32x4(t[i], t[i + 4], 0xDD);
      const Vector c = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0x88);
      const Vector d = _mm512_shuffle_f32x4(t[i + 8], t[i + 12], 0xDD);
      rows[i] = _mm512_shuffle_f32x4(a, c, 0x88);
      rows[i + 8] = _mm512_shuffle_f32x4(a, c, 0xDD);
      rows[i + 4] = _mm512_shuffle_f32x4(b, d, 0x88);
      rows[i + 12] = _mm512_shuffle_f32x4(b, d, 0xDD);
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

  static PRISM_FORCE_INLINE __mmask16 mask(int64_t count) {
    return count >= 16 ? __mmask16(0xFFFF) : __mmask16((1u << (count > 0 ? count : 0)) - 1);
  }

 private:
  template <class Combine>
  static PRISM_FORCE_INLINE Vector reduce_rows(const Vector (&rows)[kLanes], const Combine& combine) {
    Vector fours[4];
    for (int i = 0; i < 4; ++i) {
      const Vector* r = rows + 4 * i;
      const Vector a = combine(_mm512_unpacklo_ps(r[0], r[1]), _mm512_unpackhi_ps(r[0], r[1]));
      const Vector b = combine(_mm512_unpacklo_ps(r[2], r[3]), _mm512_unpackhi_ps(r[2], r[3]));
      fours[i] = combine(_mm512_shuffle_ps(a, b, 0x44), _mm512_shuffle_ps(a, b, 0xEE));
    }
    const auto join = [&](Vector a, Vector b) PRISM_INLINE_LAMBDA {
      return combine(_mm512_shuffle_f32x4(a, b, 0x88), _mm512_shuffle_f32x4(a, b, 0xDD));
    };
    return join(join(fours[0], fours[1]), join(fours[2], fours[3]));
  }
  static PRISM_FORCE_INLINE Vector widen(__m256i x) {
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(x), 16));
  }
  /// Rounds to the nearest bfloat16, ties to even; a NaN stays NaN.
  static PRISM_FORCE_INLINE __m256i narrow(Vector x) {
    const __m512i bits = _mm512_castps_si512(x);
    const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
    __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
    const __mmask16 nan = _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q);
    rounded = _mm512_mask_or_epi32(rounded, nan, bits, _mm512_set1_epi32(0x400000));
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded, 16));
  }
};

}  // namespace prism::simd
