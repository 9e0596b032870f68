// Means over blocks of tokens, as they come in.
#pragma once

#include <torch/types.h>

#include <vector>

#include "prism/sparse/bands.h"

namespace prism {

/// What the sum of a block that is not whole yet is divided by.
enum class Tail {
  exact,   ///< the number of its tokens
  padded,  ///< the size of a block, as if zeros followed: the reference
};

/// One head's queries or keys, block by block. Blocks begin at multiples of their size; the last one may still grow.
class PooledTokens {
 public:
  PooledTokens(const std::vector<Band>& bands, int64_t head_dim, int64_t block_size, Tail tail);

  /// Takes in the next tokens. @param rows_TD  float32 or bfloat16 with a dense last axis, on the CPU.
  void append(const torch::Tensor& rows_TD);
  /// Goes on at `position`, behind tokens of which nothing is known: their blocks count as zeros, which changes no
  /// ratio of energies.
  void skip_to(int64_t position);
  /// Forgets whole blocks until no token from `length` on is left.
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
  std::vector<float> sum_;   ///< over the known tokens of the block that length_ stands in
  int64_t known_ = 0;        ///< how many they are
  bool is_growing_ = false;  ///< the last of blocks_ is that block
};

}  // namespace prism
