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
  int64_t kept = 0, visible = 0;  ///< key blocks of all rows of queries; those that some query of the row sees
  int64_t queries = 0;            ///< whose exact attention was computed
  double kept_mass = 0;           ///< sum over them of the share of it that is kept
  double least_recall = 1;

  double density() const { return visible == 0 ? 1 : static_cast<double>(kept) / static_cast<double>(visible); }
  /// NaN where no query was looked at.
  double recall() const { return kept_mass / static_cast<double>(queries); }
  HeadStatistics& operator+=(const HeadStatistics& other);
};

/// Of all heads together.
HeadStatistics sum_of(const std::vector<HeadStatistics>& heads);

/// All rows of query blocks, for measure_mask().
constexpr int64_t kAllRows = -1;

/// @param mask         of input's shapes; one without rows keeps all.
/// @param recall_rows  rows of query blocks of each head and sequence, evenly spread, the last one among them, whose
/// exact
///                     attention is computed, in float64.
/// @return one for each head.
std::vector<HeadStatistics> measure_mask(const SelectorInput& input, const BlockMask& mask, int64_t recall_rows);

/// bool [B, H, M, N]: what a mask keeps of visible_blocks(). @throws InputError for masks of another shape.
torch::Tensor kept_blocks(const SelectorInput& input, const BlockMask& mask);
/// bool [B, H, M, N]: the blocks that some query of a row sees, all that a mask can keep.
torch::Tensor visible_blocks(const SelectorInput& input, int64_t query_block, int64_t key_block);

}  // namespace prism
