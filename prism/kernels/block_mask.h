// BlockMask: for every block of queries the list of key blocks it may see. The cost of attention follows what is kept,
// memory the fullest row.
#pragma once

#include <torch/types.h>

#include <vector>

namespace prism {

/// Kept key blocks per row of query blocks, of each query head or of each group of query heads.
///
/// Query blocks are anchored at absolute positions: row m holds the queries at positions [m' q, (m'+1) q) with
/// m' = m + floor(first_query / q), q = query_block_size, so a prompt cut into chunks keeps the same blocks. Whether
/// all queries of a row see all keys of a block, so that no element of it needs a mask, follows from their positions.
struct BlockMask {
  int64_t query_block_size = 128, key_block_size = 128;  ///< tokens
  torch::Tensor counts_BHM;                              ///< int32, kept blocks of each row
  torch::Tensor indices_BHMN;  ///< int32, the first counts entries of a row are its blocks, ascending

  bool defined() const { return counts_BHM.defined(); }
};

/// @param kept_BHM  the kept key blocks of each row, ascending, row by row of each head of each sequence.
BlockMask make_block_mask(const std::vector<std::vector<int32_t>>& kept_BHM, int64_t batch, int64_t heads,
                          int64_t query_block_size, int64_t key_block_size);
/// @param kept_BHMN  bool, whether row m keeps key block n: an index of a model's own, for instance.
BlockMask make_block_mask(const torch::Tensor& kept_BHMN, int64_t query_block_size, int64_t key_block_size);
/// The mask's lists as kernels read them: dense int32 on the CPU, each row's blocks there and ascending.
/// @throws InputError for other lists, and for shapes that contradict each other.
BlockMask checked_block_mask(const BlockMask& mask, int64_t key_blocks);
/// The mask of each of `heads` heads, where as many as they divide into equal groups share one.
/// @throws InputError for other numbers of heads.
BlockMask spread_to_heads(const BlockMask& mask, int64_t heads);
/// bool [B, H, M, key_blocks]: the mask as make_block_mask() takes it. @throws InputError as checked_block_mask().
torch::Tensor kept_blocks(const BlockMask& mask, int64_t key_blocks);

/// The blocks that either mask keeps, or that both keep, row by row.
/// @throws InputError for masks of other rows or blocks of other sizes, and as checked_block_mask().
BlockMask unite(const BlockMask& a, const BlockMask& b);
BlockMask intersect(const BlockMask& a, const BlockMask& b);

/// The mask as booleans [B, H, T, S], for the reference path and for tests.
/// @param first_query_B  int64 [B], absolute position of each sequence's first query.
/// @param q_lengths_B    int64 [B], queries of each sequence; those beyond need no row of the mask and get any.
/// @throws InputError for shapes that contradict each other or indices outside the keys.
torch::Tensor expand_block_mask(const BlockMask& mask, const torch::Tensor& first_query_B,
                                const torch::Tensor& q_lengths_B, int64_t queries, int64_t keys);

}  // namespace prism
