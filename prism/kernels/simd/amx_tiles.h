// What AMX is told of its tiles before they are used.
#pragma once

#include <cstdint>

namespace prism::simd {

/// All eight tiles whole: 16 rows of 64 bytes. The layout that ldtilecfg reads.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, unused[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileShapes kWholeTiles;

}  // namespace prism::simd
