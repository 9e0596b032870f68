// Selector by pooled queries and keys over all features.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct MeanPoolingOptions {
  double p = 0.95;
  int64_t sink = 1, recent = 1, last_dense = 0;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of the softmax over pooled keys that the kept blocks cover");
    v("sink", sink, "number of first key blocks that every row keeps");
    v("recent", recent,
      "number of most recent key blocks that every row keeps, including its own block, which is always kept");
    v("last_dense", last_dense, "number of last blocks of queries of a prompt that keep every block they see");
    blocks.visit(v);
  }
};

/// Keeps the top p of  softmax(scale mean(q) . mean(k))  over the blocks that a row sees, without bands. A row that
/// comes in several chunks chooses by the mean of its queries so far. Source: arXiv 2602.08426, equations 1 and 2.
std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options);

}  // namespace prism
