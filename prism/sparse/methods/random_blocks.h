// Selector that draws blocks at random, a baseline.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct RandomBlocksOptions {
  double share = 0.25;
  int64_t seed = 1, sink = 1;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("share", share, "probability of keeping each block that a row sees");
    v("seed", seed, "seed of the draw, which is the same for all heads");
    v("sink", sink, "number of first key blocks that every row keeps");
    blocks.visit(v);
  }
};

/// Keeps each block that a row sees with probability `share`, and the row's own block.
std::unique_ptr<Selector> make_random_selector(const RandomBlocksOptions& options);

}  // namespace prism
