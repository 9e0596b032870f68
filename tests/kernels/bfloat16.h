// bfloat16 values as their 16 bits, for tests on raw memory.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

namespace prism {

inline float widen(uint16_t half) {
  const uint32_t bits = uint32_t{half} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// Rounds to the nearest bfloat16, ties to even; a NaN stays NaN.
inline uint16_t narrow(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>(std::isnan(value) ? 0x7FC0 : (bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}

}  // namespace prism
