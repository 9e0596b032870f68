// The spectral selector's decision for one row of query blocks, from pooled queries and keys alone.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "prism/sparse/bands.h"

namespace prism {

/// Over which blocks energies are taken to set each band's temperature.
enum class Calibration {
  off,             ///< temperature 1
  all_blocks,      ///< all, as the reference does: a row then depends on what comes after it, and on chunks
  causal_running,  ///< up to the row: the same wherever a prompt is cut at multiples of both block sizes
};

/// Temperature of a band z of n of a head's d features, from root mean squares over pooled queries Q and keys K:
///
///   tau_z = sqrt(n / d) (RMS(Q_z) / max(RMS(Q), 1e-6)) (RMS(K_z) / max(RMS(K), 1e-6))
///
/// @param query_blocks, key_blocks  that the energies are taken over.
/// Source: arXiv 2602.08426, section 3.4, equation 13.
double band_temperature(const BandedBlocks& queries, int64_t query_blocks, const BandedBlocks& keys, int64_t key_blocks,
                        size_t band);

/// What a row needs of memory, from call to call.
struct RowScratch {
  std::vector<float> weights;
  std::vector<uint64_t> keys;
};

/// Keeps, for each band, the key blocks that hold a share of its softmax, and their union:
///
///   softmax over v < visible of  q_z . k_z(v) / (sqrt(n) tau_z)
///
/// @param temperatures, shares  of each band; a temperature of 0 (a band without energy) counts as 1.
/// @param kept                  of at least `visible` entries: set to 1 where a block is kept, others left as they are.
void keep_by_bands(const BandedBlocks& queries, int64_t row, const BandedBlocks& keys, int64_t visible,
                   std::span<const double> temperatures, std::span<const double> shares, std::span<uint8_t> kept,
                   RowScratch& scratch);

}  // namespace prism
