// Selectors that look at each head of each sequence by itself and keep nothing between chunks: the common ground of the
// spectral selector's rivals.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

/// One head's queries and the keys that they may see.
struct HeadInput : HeadBlocks {
  torch::Tensor q_TD, k_SD;  ///< float32
  double scale = 0;
  int64_t prompt_rows = 0;  ///< rows of the whole prompt, from position 0 on
};

/// Head h of sequence b.
HeadInput head_input(const SelectorInput& input, const SelectorLengths& lengths, int64_t b, int64_t h,
                     int64_t query_block, int64_t key_block);

class HeadByHeadSelector : public Selector {
 public:
  /// @throws InputError as check().
  explicit HeadByHeadSelector(const BlockSizes& blocks);
  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const final;
  BlockMask select(const SelectorInput& input, SelectorState& state) const final;

 protected:
  /// @return bool [rows, blocks]: what each row keeps. What no query sees is taken away afterwards, and each row's own
  ///         blocks are kept.
  virtual torch::Tensor select_head(const HeadInput& head) const = 0;

 private:
  BlockSizes blocks_;
};

/// Means of rows over blocks, each over the rows that there are. [blocks, D]
/// @param first  absolute position of the first row; blocks begin at multiples of their size.
torch::Tensor block_means(const torch::Tensor& rows_TD, int64_t block, int64_t first = 0);

}  // namespace prism
