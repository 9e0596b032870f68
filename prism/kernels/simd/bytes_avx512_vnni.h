// Products of bytes for AVX512-VNNI, summed exactly in int32. A 16-bit number takes part as two bytes: 256 high + low.
#pragma once

#include <cstdint>

#include "prism/kernels/simd/vector_avx512.h"

namespace prism::simd {

/// Requires AVX512-VNNI. A unit is four bytes: of a row, or of four rows and one column.
struct ByteProducts {
  static constexpr bool kBytes = true;
  using Bytes = __m512i;  ///< 64 bytes, 16 units or 16 sums
  using Floats = __m512;
  static constexpr int64_t kBytesWide = 64;
  static constexpr float kMostSigned = 127 * 256, kMostUnsigned = 65535;

  /// The scale of 16-bit numbers: x is about its number times step.
  struct ByteScale {
    float step;
    float inverse;  ///< 0 if every number is 0
  };
  /// @param largest  largest magnitude, maybe NaN, which makes step NaN.
  /// @param most     the number of the largest magnitude.
  static PRISM_FORCE_INLINE ByteScale byte_scale(float largest, float most) {
    constexpr float kLeast = 0x1p-100f;  // most / kLeast is finite
    return {largest < kLeast ? 0 : largest / most, largest >= kLeast ? most / largest : 0};
  }

  static PRISM_FORCE_INLINE Bytes all_units(int32_t unit) { return _mm512_set1_epi32(unit); }
  /// The unit at p in every place.
  static PRISM_FORCE_INLINE Bytes broadcast_unit(const void* p) {
    int32_t unit;
    __builtin_memcpy(&unit, p, sizeof unit);
    return _mm512_set1_epi32(unit);
  }
  /// Loads the first `count` bytes; the others are 0.
  static PRISM_FORCE_INLINE Bytes load_bytes(const int8_t* p, int64_t count) {
    if (count >= kBytesWide) return _mm512_loadu_si512(p);
    return _mm512_maskz_loadu_epi8(__mmask64((uint64_t{1} << (count > 0 ? count : 0)) - 1), p);
  }
  /// x + 128: signed bytes become unsigned.
  static PRISM_FORCE_INLINE Bytes to_unsigned(Bytes x) { return _mm512_xor_si512(x, _mm512_set1_epi8(-128)); }
  /// Adds the four products of each unit.
  static PRISM_FORCE_INLINE Bytes add_products(Bytes sums, Bytes unsigned_bytes, Bytes signed_bytes) {
    asm("vpdpbusd %2, %1, %0" : "+v"(sums) : "v"(unsigned_bytes), "v"(signed_bytes));
    return sums;
  }
  /// The same with the unit at p in every place.
  static PRISM_FORCE_INLINE Bytes add_products(Bytes sums, Bytes unsigned_bytes, const int8_t* signed_unit) {
    using Unit = int32_t __attribute__((may_alias, aligned(1)));
    asm("vpdpbusd %2%{1to16%}, %1, %0"
        : "+v"(sums)
        : "v"(unsigned_bytes), "m"(*reinterpret_cast<const Unit*>(signed_unit)));
    return sums;
  }
  /// 256 high + low, modulo 2^32.
  static PRISM_FORCE_INLINE Bytes join(Bytes high, Bytes low) {
    return _mm512_add_epi32(_mm512_slli_epi32(high, 8), low);
  }
  static PRISM_FORCE_INLINE Floats to_floats(Bytes sums) { return _mm512_cvtepi32_ps(sums); }

  /// Turns 16 rows of units into columns.
  static PRISM_FORCE_INLINE void transpose_units(Bytes (&rows)[16]) {
    Floats floats[16];
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) floats[i] = _mm512_castsi512_ps(rows[i]);
    Avx512::transpose(floats);
#pragma GCC unroll 16
    for (int i = 0; i < 16; ++i) rows[i] = _mm512_castps_si512(floats[i]);
  }
  /// Four rows of 64 bytes as 64 units, in the order that order_columns() undoes.
  static PRISM_FORCE_INLINE void interleave_rows(const Bytes (&rows)[4], Bytes (&units)[4]) {
    const Bytes low[2] = {_mm512_unpacklo_epi8(rows[0], rows[1]), _mm512_unpacklo_epi8(rows[2], rows[3])};
    const Bytes high[2] = {_mm512_unpackhi_epi8(rows[0], rows[1]), _mm512_unpackhi_epi8(rows[2], rows[3])};
    units[0] = _mm512_unpacklo_epi16(low[0], low[1]);
    units[1] = _mm512_unpackhi_epi16(low[0], low[1]);
    units[2] = _mm512_unpacklo_epi16(high[0], high[1]);
    units[3] = _mm512_unpackhi_epi16(high[0], high[1]);
  }
  /// Sums of the units of interleave_rows(), in the order of the columns.
  static PRISM_FORCE_INLINE void order_columns(Floats (&sums)[4]) {
    const Floats a = _mm512_shuffle_f32x4(sums[0], sums[1], 0x44), b = _mm512_shuffle_f32x4(sums[2], sums[3], 0x44);
    const Floats c = _mm512_shuffle_f32x4(sums[0], sums[1], 0xEE), d = _mm512_shuffle_f32x4(sums[2], sums[3], 0xEE);
    sums[0] = _mm512_shuffle_f32x4(a, b, 0x88);
    sums[1] = _mm512_shuffle_f32x4(a, b, 0xDD);
    sums[2] = _mm512_shuffle_f32x4(c, d, 0x88);
    sums[3] = _mm512_shuffle_f32x4(c, d, 0xDD);
  }

  /// The larger magnitude of each lane. Compares integers, so that a NaN is the largest.
  static PRISM_FORCE_INLINE Floats larger_magnitude(Floats a, Floats b) {
    const __m512i magnitude = _mm512_set1_epi32(0x7FFFFFFF);
    return _mm512_castsi512_ps(_mm512_max_epi32(_mm512_and_si512(_mm512_castps_si512(a), magnitude),
                                                _mm512_and_si512(_mm512_castps_si512(b), magnitude)));
  }
  /// @param magnitudes  from larger_magnitude().
  static PRISM_FORCE_INLINE float largest_magnitude(Floats magnitudes) {
    return __builtin_bit_cast(float, _mm512_reduce_max_epi32(_mm512_castps_si512(magnitudes)));
  }
  /// Rounds 16 values of magnitude up to kMostSigned and stores them as bytes. @return  the numbers; -kMostSigned for a
  /// NaN, so that their sum fits 32 bits.
  static PRISM_FORCE_INLINE Bytes store_signed(Floats x, int8_t* high, int8_t* low) {
    const __m512i whole = _mm512_cvtps_epi32(_mm512_max_ps(x, _mm512_set1_ps(-kMostSigned)));
    const __m512i upper = _mm512_srai_epi32(_mm512_add_epi32(whole, _mm512_set1_epi32(128)), 8);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(upper));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(whole));  // whole - 256 upper, modulo 256
    return whole;
  }
  /// The same for values from 0 to kMostUnsigned, as unsigned bytes.
  static PRISM_FORCE_INLINE void store_unsigned(Floats x, int8_t* high, int8_t* low) {
    const __m512i whole = _mm512_cvtps_epi32(x);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(high), _mm512_cvtepi32_epi8(_mm512_srli_epi32(whole, 8)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(low), _mm512_cvtepi32_epi8(whole));
  }
  static PRISM_FORCE_INLINE int32_t sum_of(Bytes numbers) {
    return _mm512_reduce_add_epi32(numbers);
  }
  static PRISM_FORCE_INLINE Bytes add_numbers(Bytes a, Bytes b) {
    return _mm512_add_epi32(a, b);
  }
};

}  // namespace prism::simd
