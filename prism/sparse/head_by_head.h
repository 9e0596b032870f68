// Selectors that look at each head of each sequence by itself and keep nothing between chunks: the common ground of the
// spectral selector's rivals.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

/// One head's queries and the keys that they may see.
struct HeadInput {
  torch::Tensor q_TD, k_SD;  ///< float32
  int64_t query_block, key_block;
  double scale;

  int64_t queries() const { return q_TD.size(0); }
  int64_t keys() const { return k_SD.size(0); }
  int64_t first_query() const { return keys() - queries(); }
  /// Query blocks and key blocks, both anchored at absolute positions.
  int64_t first_row() const { return first_query() / query_block; }
  int64_t rows() const { return queries() == 0 ? 0 : (keys() - 1) / query_block - first_row() + 1; }
  int64_t blocks() const { return (keys() + key_block - 1) / key_block; }
  /// The row that query t stands in.
  int64_t row_of(int64_t t) const { return (first_query() + t) / query_block - first_row(); }
  /// Key blocks that some query of a row sees: [0, visible).
  int64_t visible(int64_t row) const;
  /// The key block of a row's first query.
  int64_t own_block(int64_t row) const { return (first_row() + row) * query_block / key_block; }
};

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
