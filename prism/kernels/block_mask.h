// BlockMask: for every block of queries the list of key blocks it may see. Cost and memory follow what is kept.
#pragma once

#include <torch/types.h>

namespace prism {

/// Kept key blocks per row of query blocks.
///
/// Query blocks are anchored at absolute positions: row m holds the queries at positions [m' q, (m'+1) q) with
/// m' = m + floor(first_query / q), q = query_block_size, so a prompt cut into chunks keeps the same blocks.
struct BlockMask {
  int64_t query_block_size = 128, key_block_size = 128;  ///< tokens
  torch::Tensor counts_BHM;                              ///< int32, kept blocks of each row
  torch::Tensor indices_BHMN;  ///< int32, the first counts entries of a row are its blocks, ascending
  /// uint8: 1 where every query of the row may see every key of the block, so that no element needs a mask. Undefined:
  /// every block is checked element by element. A hint for speed; results are those of the element masks either way.
  torch::Tensor full_BHMN;

  bool defined() const { return counts_BHM.defined(); }
};

/// The mask as booleans [B, H, T, S], for the reference path and for tests.
/// @param first_query_B  int64 [B], absolute position of each sequence's first query.
/// @param q_lengths_B    int64 [B], queries of each sequence; those beyond need no row of the mask and get any.
/// @throws InputError for shapes that contradict each other or indices outside the keys.
torch::Tensor expand_block_mask(const BlockMask& mask, const torch::Tensor& first_query_B,
                                const torch::Tensor& q_lengths_B, int64_t queries, int64_t keys);

}  // namespace prism
