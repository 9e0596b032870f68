// BlockMask: for every block of queries, the list of key blocks it attends to. The cost of attention grows with the
// number of kept blocks; the memory of the mask grows with its longest row.
#pragma once

#include <torch/types.h>

#include <vector>

namespace prism {

/// Kept key blocks of each row (block of queries), for each query head or each group of query heads.
///
/// Query blocks are anchored at absolute positions: row m holds the queries at positions [m' q, (m'+1) q) with
/// m' = m + floor(first_query / q), q = query_block_size, so a prompt cut into chunks keeps the same blocks. Positions
/// also tell whether all queries of a row see all keys of a block, in which case its elements need no mask.
struct BlockMask {
  int64_t query_block_size = 128, key_block_size = 128;  ///< tokens
  torch::Tensor counts_BHM;                              ///< int32, kept blocks of each row
  torch::Tensor indices_BHMN;  ///< int32, kept blocks of each row, ascending; entries past the row's count are unused

  bool defined() const { return counts_BHM.defined(); }
};

/// @param kept_BHM  [B H M] the kept key blocks of each row, ascending.
BlockMask make_block_mask(const std::vector<std::vector<int32_t>>& kept_BHM, int64_t batch, int64_t heads,
                          int64_t query_block_size, int64_t key_block_size);
/// @param kept_BHMN  bool, whether row m keeps key block n.
BlockMask make_block_mask(const torch::Tensor& kept_BHMN, int64_t query_block_size, int64_t key_block_size);
/// Checks a mask and converts its lists to what kernels read: dense int32 on the CPU, ascending and in range.
/// @throws InputError for indices out of range or not ascending, and for inconsistent shapes.
BlockMask checked_block_mask(const BlockMask& mask, int64_t key_blocks);
/// Repeats the mask so that each of `heads` heads has its own; equal groups of heads share one of the given masks.
/// @throws InputError if the mask's number of heads does not divide `heads`.
BlockMask spread_to_heads(const BlockMask& mask, int64_t heads);
/// The mask as bool [B, H, M, key_blocks], the form make_block_mask() takes. @throws InputError as
/// checked_block_mask().
torch::Tensor kept_blocks(const BlockMask& mask, int64_t key_blocks);

/// The mask as bool [B, H, T, S], for the reference path and for tests.
/// @param first_query_B  int64 [B], absolute position of each sequence's first query; the result is on its device.
/// @param q_lengths_B    int64 [B], queries of each sequence; the result for later queries is arbitrary.
/// @throws InputError for inconsistent shapes or indices outside the keys.
torch::Tensor expand_block_mask(const BlockMask& mask, const torch::Tensor& first_query_B,
                                const torch::Tensor& q_lengths_B, int64_t queries, int64_t keys);

}  // namespace prism
