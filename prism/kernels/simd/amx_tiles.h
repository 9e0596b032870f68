// Tile configuration of AMX.
#pragma once

#include <cstdint>

namespace prism::simd {

/// The operand of ldtilecfg: all eight tiles have full size, 16 rows of 64 bytes.
struct alignas(64) TileShapes {
  uint8_t palette = 1, start_row = 0, unused[14] = {};
  uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64, 64, 64};
  uint8_t rows[16] = {16, 16, 16, 16, 16, 16, 16, 16};
};
inline constexpr TileShapes kWholeTiles;

}  // namespace prism::simd
