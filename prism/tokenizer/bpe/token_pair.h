// A pair of adjacent tokens packed into one number, the key for looking up merges.
#pragma once

#include <cstdint>

namespace prism {

inline uint64_t pack_pair(int32_t left, int32_t right) {
  return static_cast<uint64_t>(static_cast<uint32_t>(left)) << 32 | static_cast<uint32_t>(right);
}

}  // namespace prism
