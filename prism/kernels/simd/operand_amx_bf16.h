// Operands of bfloat16 pairs (operand.h) for AMX, whose registers are tiles of 16 rows of 64 bytes.
//
// A tile of sums covers 16 rows of the left side and 16 columns of a panel, and takes 16 steps at a time.
#pragma once

#include "prism/kernels/simd/amx_tiles.h"
#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::simd {

/// Everything except products comes from AVX512-BF16.
struct TilesOfBfloat16 : PairsOfBfloat16 {
  static constexpr int kTileRows = 32, kTileColumns = 2;  ///< 2 x 2 tiles of sums, 2 of each operand: all eight
  static constexpr int kSteps = 16;
  static constexpr int kLeftRows = 16;
  // A strip of rows uses all panels of a group before the next strip does, so a group must fit the L2 cache.
  static constexpr int64_t kPanelBytes = 64 << 10, kGroupPanels = 8;

  /// Holds the tiles of the calling thread while it lives. Nothing else may use them meanwhile.
  class Session {
   public:
    Session() { _tile_loadconfig(&kWholeTiles); }
    ~Session() { _tile_release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
  };

  /// Multiplies up to 32 rows by a panel of one or two vectors of columns (tile.h, multiply()).
  template <class Left, class Order, class Store>
  static PRISM_FORCE_INLINE void multiply(const Left& a, int rows, const Element* panel, Order order, int vectors,
                                          int64_t steps, Store&& store) {
    constexpr int64_t kStride = kTileColumns * kLanes;
    alignas(64) float sums[kTileRows * kStride];
    multiply_into(a, rows, panel, order, vectors, steps, nullptr, 0, sums, kStride);
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < vectors; ++v) store(r, v, load(sums + r * kStride + v * kLanes));
  }

  /// The same, but stores 16 or 32 whole rows (tile.h, multiply_into()).
  template <class Left, class Order>
  static PRISM_FORCE_INLINE void multiply_into(const Left& a, int rows, const Element* panel, Order order, int vectors,
                                               int64_t steps, const float* before, int64_t before_stride, float* to,
                                               int64_t to_stride) {
    if (rows > kLeftRows) {
      vectors > 1 ? add_tiles<2, 2>(a, panel, order, steps, before, before_stride, to, to_stride)
                  : add_tiles<2, 1>(a, panel, order, steps, before, before_stride, to, to_stride);
    } else {
      vectors > 1 ? add_tiles<1, 2>(a, panel, order, steps, before, before_stride, to, to_stride)
                  : add_tiles<1, 1>(a, panel, order, steps, before, before_stride, to, to_stride);
    }
  }

 private:
  /// Uses tiles 0 to 3 for sums, 4 and 5 for rows, 6 and 7 for columns. Strides of `before` and `to` are in floats; a
  /// null `before` means zeros.
  template <int Rows, int Columns, class Left, class Order>
  static PRISM_FORCE_INLINE void add_tiles(const Left& a, const Element* panel, Order order, int64_t steps,
                                           const float* before, int64_t before_stride, float* to, int64_t to_stride) {
    const int64_t step = order.step(Columns), row_bytes = step * static_cast<int64_t>(sizeof(Element));
    const int64_t a_bytes = a.stride * static_cast<int64_t>(sizeof(Element));
    const int64_t before_bytes = before_stride * static_cast<int64_t>(sizeof(float));
    const int64_t to_bytes = to_stride * static_cast<int64_t>(sizeof(float));
    const Element* lower = a.first + kLeftRows * a.stride;
    asm volatile("" ::: "memory");  // tile loads read earlier stores, but g++ does not know that
    if (before == nullptr) {
      _tile_zero(0);
      if constexpr (Columns > 1) _tile_zero(1);
      if constexpr (Rows > 1) _tile_zero(2);
      if constexpr (Rows > 1 && Columns > 1) _tile_zero(3);
    } else {
      const float* more = before + kLeftRows * before_stride;
      _tile_loadd(0, before, before_bytes);
      if constexpr (Columns > 1) _tile_loadd(1, before + kLanes, before_bytes);
      if constexpr (Rows > 1) _tile_loadd(2, more, before_bytes);
      if constexpr (Rows > 1 && Columns > 1) _tile_loadd(3, more + kLanes, before_bytes);
    }
    for (int64_t s = 0; s < steps; s += kSteps) {
      const Element* columns = panel + s * step;
      _tile_loadd(6, columns, row_bytes);
      _tile_loadd(4, a.first + s * kPair, a_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (Columns > 1) {
        _tile_loadd(7, columns + order.vector(), row_bytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (Rows > 1) {
        _tile_loadd(5, lower + s * kPair, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        if constexpr (Columns > 1) _tile_dpbf16ps(3, 5, 7);
      }
    }
    float* below = to + kLeftRows * to_stride;
    _tile_stored(0, to, to_bytes);
    if constexpr (Columns > 1) _tile_stored(1, to + kLanes, to_bytes);
    if constexpr (Rows > 1) _tile_stored(2, below, to_bytes);
    if constexpr (Rows > 1 && Columns > 1) _tile_stored(3, below + kLanes, to_bytes);
    asm volatile("" ::: "memory");  // later loads read the tile stores
  }
};

}  // namespace prism::simd
