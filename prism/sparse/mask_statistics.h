// What a mask keeps, head by head: how many blocks, and how much of the exact attention.
//
//   const auto heads = measure_mask(input, mask, /*recall_rows=*/8);
//   fmt::print("{:.3f} {:.3f}\n", heads[3].density(), heads[3].recall());
#pragma once

#include <cstdint>
#include <vector>

#include "prism/sparse/selector.h"

namespace prism {

/// One query head, over all sequences of a batch.
struct HeadStatistics {
  int64_t kept = 0, visible = 0;     ///< key blocks of all rows of queries; those that some query of the row sees
  std::vector<float> shares;         ///< of each query whose exact attention was computed, how much of it is kept
  int64_t needed = 0, replaced = 0;  ///< in those queries' rows: the fewest blocks that hold as much; kept ones

  double density() const { return visible == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(visible); }
  bool has_recall() const { return !shares.empty(); }
  /// Mean share; NaN where no query was looked at.
  double recall() const;
  /// The share that such a part of the queries stays below, 0 for the least. NaN likewise.
  double recall_quantile(double part) const;
  /// What the density would be of the best choice of blocks that holds as much, row by row: from the rows that were
  /// looked at, so that it stands beside density(). NaN likewise.
  double oracle_density() const { return density() * static_cast<double>(needed) / static_cast<double>(replaced); }
  HeadStatistics& operator+=(const HeadStatistics& other);
};

/// Of all heads together.
HeadStatistics sum_of(const std::vector<HeadStatistics>& heads);

/// All rows of query blocks, for measure_mask().
constexpr int64_t kAllRows = -1;

/// @param mask         of input's shapes; one without rows keeps all.
/// @param recall_rows  rows of query blocks of each head and sequence, evenly spread, the last one among them, whose
///                     exact attention is computed, in float64.
/// @return one for each head.
std::vector<HeadStatistics> measure_mask(const SelectorInput& input, const BlockMask& mask, int64_t recall_rows);

/// bool [B, H, M, N]: what a mask keeps of visible_blocks(). @throws InputError for masks of another shape.
torch::Tensor kept_blocks(const SelectorInput& input, const BlockMask& mask);
/// bool [B, H, M, N]: the blocks that some query of a row sees, all that a mask can keep.
torch::Tensor visible_blocks(const SelectorInput& input, int64_t query_block, int64_t key_block);

}  // namespace prism
