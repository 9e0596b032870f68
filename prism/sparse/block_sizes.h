// Block sizes of a selector: one option for queries and keys, or one for each.
#pragma once

#include <cstdint>

namespace prism {

struct BlockSizes {
  int64_t block_size = 128, query_block = 0, key_block = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("block_size", block_size, "tokens per block: 32, 64, 128 or 256");
    v("query_block", query_block, "tokens per query block (a row of the mask); 0: block_size");
    v("key_block", key_block, "tokens per key block; 0: block_size");
  }

  int64_t queries() const { return query_block == 0 ? block_size : query_block; }
  int64_t keys() const { return key_block == 0 ? block_size : key_block; }
};

/// @throws InputError unless both sizes are 32, 64, 128 or 256.
void check(const BlockSizes& blocks);

}  // namespace prism
