// Conversions between float32 and the 16 bits of IEEE's binary16 (F16) and of bfloat16 (BF16).
//
//   const float scale = float_of_f16(bits);   const uint16_t bits = f16_of_float(scale);
//
// Rounding is to nearest, ties to even. A NaN stays a NaN: its sign and the upper bits of its payload are kept, and
// conversion from float32 makes it quiet.
#pragma once

#include <bit>
#include <cstdint>

namespace prism {

inline float float_of_f16(uint16_t half) {
  const uint32_t sign = (half & 0x8000u) << 16, magnitude = half & 0x7FFFu;
  // Subnormal: a multiple of 2^-24, exact in float32.
  if (magnitude < 0x0400u)
    return std::bit_cast<float>(sign | std::bit_cast<uint32_t>(static_cast<float>(magnitude) * 0x1p-24f));
  const uint32_t rebias = magnitude < 0x7C00u ? 127 - 15 : 255 - 31;  // infinity and NaN keep the largest exponent
  return std::bit_cast<float>(sign | ((magnitude << 13) + (rebias << 23)));
}

inline uint16_t f16_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7FFFFFFFu;
  uint32_t half = 0;
  if (magnitude > 0x7F800000u) {
    half = 0x7E00u | ((magnitude >> 13) & 0x03FFu);
  } else if (magnitude >= 0x47800000u) {  // 2^16 and above, infinity
    half = 0x7C00u;
  } else if (magnitude < 0x38800000u) {
    // Below 2^-14, subnormal: next to 0.5, float32 has the spacing 2^-24 of subnormals, so the addition rounds.
    half = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + 0.5f) - std::bit_cast<uint32_t>(0.5f);
  } else {
    const uint32_t rounded = magnitude + 0x0FFFu + ((magnitude >> 13) & 1u);  // may carry into the exponent
    half = (rounded >> 13) - ((127u - 15u) << 10);
  }
  return static_cast<uint16_t>(sign | half);
}

inline float float_of_bf16(uint16_t upper) {
  return std::bit_cast<float>(uint32_t{upper} << 16);
}

inline uint16_t bf16_of_float(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<uint16_t>((bits >> 16) | 0x0040u);
  return static_cast<uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

}  // namespace prism
