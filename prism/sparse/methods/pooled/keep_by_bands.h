// The decision for one row of query blocks by bands of features. It reads only pooled queries and keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prism/sparse/methods/pooled/bands.h"

namespace prism {

/// One row of query blocks, and the key blocks that it may keep.
struct PooledRow {
  const BandedBlocks& queries;
  int64_t row = 0;  ///< from position 0 on
  const BandedBlocks& keys;
  int64_t visible = 0;  ///< number of key blocks, from the first on
};

/// Memory that keep_by_bands() reuses between calls.
struct RowScratch {
  std::vector<float> weights;
  std::vector<uint64_t> keys;
};

/// For each band z, finds the fewest key blocks that hold its share of the softmax, and keeps the union over bands:
///
///   softmax over v < visible of  scale_z q_z . k_z(v)
///
/// @param scales, shares  one for each band. Scales beyond 2 * 10^38 count as that.
/// @param kept            at least `visible` entries; set to 1 where a block is kept, otherwise unchanged.
void keep_by_bands(const PooledRow& row, std::span<const double> scales, std::span<const double> shares,
                   std::span<uint8_t> kept, RowScratch& scratch);

}  // namespace prism
