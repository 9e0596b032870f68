// Running means over blocks of tokens.
#pragma once

#include <torch/types.h>

#include <vector>

#include "prism/sparse/methods/pooled/bands.h"

namespace prism {

/// Divisor for the mean of a partial block.
enum class Tail {
  exact,   ///< the number of its tokens
  padded,  ///< the block size, as if zeros followed; the reference implementation does this
};

/// Block means of one head's queries or keys. Blocks start at multiples of their size; the last one may still grow.
class PooledTokens {
 public:
  PooledTokens(const std::vector<Band>& bands, int64_t head_dim, int64_t block_size, Tail tail);

  /// Appends the next tokens. @param rows_TD  float32 or bfloat16 with a dense last axis, on the CPU.
  void append(const torch::Tensor& rows_TD);
  /// Continues at `position`, after unknown tokens. Their blocks count as zeros, which changes no ratio of energies.
  void skip_to(int64_t position);
  /// Drops whole blocks until no token from `length` on is left.
  void truncate(int64_t length);

  int64_t length() const { return length_; }
  const BandedBlocks& blocks() const { return blocks_; }

 private:
  template <class Element>
  void add_rows(const Element* rows, int64_t stride, int64_t count);
  void open_block();
  void close_block();

  BandedBlocks blocks_;
  int64_t block_size_;
  Tail tail_;
  int64_t length_ = 0;
  std::vector<float> sum_;   ///< sum over the known tokens of the block at length_
  int64_t known_ = 0;        ///< number of tokens in sum_
  bool is_growing_ = false;  ///< whether blocks_ ends with that block
};

}  // namespace prism
