// Pairs of bfloat16 as what goes into products (operand.h): AMX, whose registers are tiles of 16 rows of 64 bytes.
//
// A tile of sums takes in 16 rows of the left side and 16 columns of a panel, 16 steps at a time.
#pragma once

#include "prism/kernels/simd/amx_tiles.h"
#include "prism/kernels/simd/operand_avx512_bf16.h"

namespace prism::simd {

/// What products do not need comes from AVX512-BF16.
struct TilesOfBfloat16 : PairsOfBfloat16 {
  static constexpr int kTileRows = 32, kTileColumns = 2;  ///< two by two tiles of sums, two of each operand: all eight
  static constexpr int kSteps = 16;
  static constexpr int kLeftRows = 16;
  static constexpr int64_t kPanelBytes = 32 << 10;  ///< in the first cache, with rows of the left side

  /// The tiles of the calling thread, while it lives. Nothing else may use them meanwhile.
  class Session {
   public:
    Session() { _tile_loadconfig(&kWholeTiles); }
    ~Session() { _tile_release(); }
    Session(const Session&) = delete;
    Session& operator=(const Session&) = delete;
  };

  /// Up to 32 rows times a panel of one or two vectors of columns (tile.h, multiply()).
  template <class Left, class Store>
  static PRISM_FORCE_INLINE void multiply(const Left& a, int rows, const Element* panel, int vectors, int64_t steps,
                                          Store&& store) {
    if (rows > kLeftRows) {
      vectors > 1 ? multiply_tiles<2, 2>(a, rows, panel, steps, store)
                  : multiply_tiles<2, 1>(a, rows, panel, steps, store);
    } else {
      vectors > 1 ? multiply_tiles<1, 2>(a, rows, panel, steps, store)
                  : multiply_tiles<1, 1>(a, rows, panel, steps, store);
    }
  }

 private:
  /// Sums in tiles 0 to 3, rows in 4 and 5, columns in 6 and 7.
  template <int Rows, int Columns, class Left, class Store>
  static PRISM_FORCE_INLINE void multiply_tiles(const Left& a, int rows, const Element* panel, int64_t steps,
                                                Store&& store) {
    constexpr int64_t kRowBytes = Columns * kLanes * kPair * sizeof(Element), kStride = Columns * kLanes;
    const int64_t a_bytes = a.stride * static_cast<int64_t>(sizeof(Element));
    const Element* lower = a.first + kLeftRows * a.stride;
    asm volatile("" ::: "memory");  // loads of tiles read what was stored before, of which g++ knows nothing
    _tile_zero(0);
    if constexpr (Columns > 1) _tile_zero(1);
    if constexpr (Rows > 1) _tile_zero(2);
    if constexpr (Rows > 1 && Columns > 1) _tile_zero(3);
    for (int64_t s = 0; s < steps; s += kSteps) {
      const Element* columns = panel + s * kStride * kPair;
      _tile_loadd(6, columns, kRowBytes);
      _tile_loadd(4, a.first + s * kPair, a_bytes);
      _tile_dpbf16ps(0, 4, 6);
      if constexpr (Columns > 1) {
        _tile_loadd(7, columns + kLanes * kPair, kRowBytes);
        _tile_dpbf16ps(1, 4, 7);
      }
      if constexpr (Rows > 1) {
        _tile_loadd(5, lower + s * kPair, a_bytes);
        _tile_dpbf16ps(2, 5, 6);
        if constexpr (Columns > 1) _tile_dpbf16ps(3, 5, 7);
      }
    }
    alignas(64) float sums[Rows * kLeftRows * kStride];
    constexpr int64_t kSumBytes = kStride * sizeof(float);
    _tile_stored(0, sums, kSumBytes);
    if constexpr (Columns > 1) _tile_stored(1, sums + kLanes, kSumBytes);
    if constexpr (Rows > 1) _tile_stored(2, sums + kLeftRows * kStride, kSumBytes);
    if constexpr (Rows > 1 && Columns > 1) _tile_stored(3, sums + kLeftRows * kStride + kLanes, kSumBytes);
    asm volatile("" ::: "memory");
    for (int r = 0; r < rows; ++r)
      for (int v = 0; v < Columns; ++v) store(r, v, load(sums + r * kStride + v * kLanes));
  }
};

}  // namespace prism::simd
