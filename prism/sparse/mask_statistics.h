// Statistics of a mask for each head: how many blocks it keeps and how much of the exact attention they hold.
//
//   const auto heads = measure_mask(input, mask, /*recall_rows=*/8);
//   fmt::print("{:.3f} {:.3f}\n", heads[3].density(), heads[3].recall());
#pragma once

#include <cstdint>
#include <vector>

#include "prism/sparse/selector.h"

namespace prism {

/// Statistics of one query head over all sequences of a batch.
struct HeadStatistics {
  int64_t kept = 0, visible = 0;     ///< key blocks kept, and seen by some query of the row, summed over all rows
  std::vector<float> shares;         ///< kept share of the exact attention, for each measured query
  int64_t needed = 0, replaced = 0;  ///< in the measured rows: fewest blocks with the same attention; kept blocks

  double density() const { return visible == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(visible); }
  bool has_recall() const { return !shares.empty(); }
  /// Mean share; NaN if no query was measured.
  double recall() const;
  /// Quantile of the shares: `part` of the queries have a lower share; 0 gives the minimum. NaN if no query was
  /// measured.
  double recall_quantile(double part) const;
  /// Density of the best possible choice of blocks that holds the same attention in each row. Extrapolated from the
  /// measured rows, so that it compares to density(). NaN if no query was measured.
  double oracle_density() const;
  HeadStatistics& operator+=(const HeadStatistics& other);
};

/// Statistics of all heads together.
HeadStatistics sum_of(const std::vector<HeadStatistics>& heads);

/// For measure_mask(): measures all rows of query blocks.
constexpr int64_t kAllRows = -1;

/// Measures a mask against the exact attention.
/// @param mask         a mask for input's shapes; one without rows keeps all blocks.
/// @param recall_rows  number of rows of query blocks, for each head and sequence, whose exact attention is computed in
///                     float64. They are evenly spread and include the last row.
/// @return             statistics of each head.
std::vector<HeadStatistics> measure_mask(const SelectorInput& input, const BlockMask& mask, int64_t recall_rows);

/// bool [B, H, M, N]: the visible_blocks() that a mask keeps. @throws InputError for masks of another shape.
torch::Tensor kept_blocks(const SelectorInput& input, const BlockMask& mask);
/// bool [B, H, M, N]: the blocks that some query of a row sees; a mask can keep no others.
torch::Tensor visible_blocks(const SelectorInput& input, int64_t query_block, int64_t key_block);

}  // namespace prism
