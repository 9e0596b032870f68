// Base class of selectors that treat each head of each sequence independently and keep no state between chunks.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

/// One head's queries and the keys they may see.
struct HeadInput : HeadBlocks {
  torch::Tensor q_TD, k_SD;  ///< float32
  double scale = 0;
  int64_t prompt_rows = 0;  ///< rows of the whole prompt, from position 0 on
};

/// Extracts head h of sequence b.
HeadInput head_input(const SelectorInput& input, const SelectorLengths& lengths, int64_t b, int64_t h,
                     int64_t query_block, int64_t key_block);

class HeadByHeadSelector : public Selector {
 public:
  /// @throws InputError as check().
  explicit HeadByHeadSelector(const BlockSizes& blocks);
  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const final;
  BlockMask select(const SelectorInput& input, SelectorState& state) const final;

 protected:
  /// @return bool or uint8 [rows, blocks]: the blocks each row keeps. select() then removes blocks that no query of the
  ///         row sees and adds the row's own blocks.
  virtual torch::Tensor select_head(const HeadInput& head) const = 0;

 private:
  BlockSizes blocks_;
};

/// Means of the rows in each block, [blocks, D]. A partial block is averaged over the rows it has.
/// @param first  absolute position of the first row; blocks start at multiples of their size.
torch::Tensor block_means(const torch::Tensor& rows_TD, int64_t block, int64_t first = 0);

}  // namespace prism
