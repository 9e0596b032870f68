#include "prism/sparse/block_sizes.h"

#include "prism/core/error.h"

namespace prism {

void check(const BlockSizes& blocks) {
  for (const auto& [name, size] : {std::pair{blocks.query_block == 0 ? "block_size" : "query_block", blocks.queries()},
                                   {blocks.key_block == 0 ? "block_size" : "key_block", blocks.keys()}})
    PRISM_CHECK(size == 32 || size == 64 || size == 128 || size == 256, "selector",
                "{}: expected 32, 64, 128 or 256; found {}; choose one of these.", name, size);
}

}  // namespace prism
