// Operands of bfloat16 pairs (operand.h) for AVX512-BF16.
#pragma once

#include "prism/kernels/simd/operand.h"
#include "prism/kernels/simd/vector_avx512.h"

namespace prism::simd {

/// Computes c += a0 b0 + a1 b1 in float32. Requires AVX512-BF16.
struct PairsOfBfloat16 : Avx512, StepByStep {
  using Element = uint16_t;
  static constexpr int kPair = 2;
  static constexpr int kExpDegree = 4;

  static PRISM_FORCE_INLINE Vector step(Vector c, Vector a, Vector b) {
    return _mm512_dpbf16_ps(c, (__m512bh)a, (__m512bh)b);
  }
  /// One unit in every lane.
  static PRISM_FORCE_INLINE Vector broadcast(const Element* p) {
    int32_t bits;
    __builtin_memcpy(&bits, p, sizeof bits);
    return _mm512_castsi512_ps(_mm512_set1_epi32(bits));
  }
  static PRISM_FORCE_INLINE Vector load_step(const Element* p) { return _mm512_loadu_ps(p); }
  using Avx512::store_units;
  static PRISM_FORCE_INLINE void store_units(uint16_t* p, Vector x, int64_t count) {
    const auto rounded = (__m256i)_mm512_cvtneps_pbh(x);
    if (count >= kLanes) return _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), rounded);
    _mm256_mask_storeu_epi16(p, mask(count), rounded);
  }
  /// Stores two vectors of float32 as 32 elements, in order.
  static PRISM_FORCE_INLINE void store_elements(Element* p, Vector low, Vector high) {
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(high, low));
  }
  /// Stores two rows of 16 float32 as 16 units.
  static PRISM_FORCE_INLINE void store_pairs(Element* p, Vector even, Vector odd) {
    const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6,
                                           21, 5, 20, 4, 19, 3, 18, 2, 17, 1, 16, 0);
    _mm512_storeu_si512(p, _mm512_permutexvar_epi16(order, (__m512i)_mm512_cvtne2ps_pbh(odd, even)));
  }
  /// Loads 16 units of a row with `count` elements; the others are 0.
  static PRISM_FORCE_INLINE Vector load_inner(const uint16_t* p, int64_t count) {
    return _mm512_castsi512_ps(_mm512_maskz_loadu_epi16(mask32(count), p));
  }
  static PRISM_FORCE_INLINE void store_inner(Element* p, Vector units, int64_t count) {
    if (count >= kLanes * kPair) return _mm512_storeu_si512(p, _mm512_castps_si512(units));
    _mm512_mask_storeu_epi16(p, mask32(count), _mm512_castps_si512(units));
  }
  /// Units of two rows with 16 columns, of which `count` exist. A missing second row counts as zeros.
  static PRISM_FORCE_INLINE Vector interleave(const uint16_t* even, const uint16_t* odd, int64_t count) {
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask(count), even));
    const __m512i high =
        odd == nullptr ? _mm512_setzero_si512() : _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask(count), odd));
    return _mm512_castsi512_ps(_mm512_or_si512(low, _mm512_slli_epi32(high, 16)));
  }
  /// Units of the first 2 kLanes columns of two rows.
  static PRISM_FORCE_INLINE void interleave(const uint16_t* even, const uint16_t* odd, Vector (&units)[2]) {
    const __m512i low = _mm512_set_epi16(47, 15, 46, 14, 45, 13, 44, 12, 43, 11, 42, 10, 41, 9, 40, 8, 39, 7, 38, 6, 37,
                                         5, 36, 4, 35, 3, 34, 2, 33, 1, 32, 0);
    const __m512i high = _mm512_add_epi16(low, _mm512_set1_epi16(16));
    const __m512i a = _mm512_loadu_si512(even), b = _mm512_loadu_si512(odd);
    units[0] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(a, low, b));
    units[1] = _mm512_castsi512_ps(_mm512_permutex2var_epi16(a, high, b));
  }

 private:
  static PRISM_FORCE_INLINE __mmask32 mask32(int64_t count) {
    return count >= 32 ? __mmask32(0xFFFFFFFF) : __mmask32((uint64_t{1} << (count > 0 ? count : 0)) - 1);
  }
};

}  // namespace prism::simd
