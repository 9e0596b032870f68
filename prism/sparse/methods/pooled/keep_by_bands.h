// The decision for one row of query blocks by bands of features. It reads only pooled queries and keys.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prism/sparse/methods/pooled/bands.h"

namespace prism {

/// The blocks whose energies set each band's temperature.
enum class Calibration {
  off,             ///< none: the temperature is 1
  all_blocks,      ///< all blocks, as in the reference: a row then depends on later blocks and on how a prompt is cut
  causal_running,  ///< blocks up to the row: the same however a prompt is cut into chunks of whole blocks
};

/// Temperature of a band z with n of a head's d features, from root mean squares over pooled queries Q and keys K:
///
///   tau_z = sqrt(n / d) (RMS(Q_z) / max(RMS(Q), 1e-6)) (RMS(K_z) / max(RMS(K), 1e-6))
///
/// @param query_blocks, key_blocks  number of blocks that the root mean squares are taken over.
/// Source: arXiv 2602.08426, section 3.4, equation 13.
double band_temperature(const BandedBlocks& queries, int64_t query_blocks, const BandedBlocks& keys, int64_t key_blocks,
                        size_t band);

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

/// For each band, finds the fewest key blocks that hold its share of the softmax, and keeps the union over bands:
///
///   softmax over v < visible of  q_z . k_z(v) / (sqrt(n) tau_z)
///
/// @param temperatures, shares  one for each band; a temperature of 0 (a band without energy) counts as 1.
/// @param kept                  at least `visible` entries; set to 1 where a block is kept, otherwise unchanged.
void keep_by_bands(const PooledRow& row, std::span<const double> temperatures, std::span<const double> shares,
                   std::span<uint8_t> kept, RowScratch& scratch);

}  // namespace prism
