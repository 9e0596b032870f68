// Baseline selectors: simple ones, and an oracle.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct MeanPoolingOptions {
  double p = 0.95;
  int64_t sink = 1, recent = 1;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of the softmax over pooled keys that the kept blocks cover");
    v("sink", sink, "number of first key blocks that every row keeps");
    v("recent", recent, "number of last key blocks that every row keeps, counted from its own, which is always kept");
    blocks.visit(v);
  }
};

struct SinkWindowOptions {
  int64_t sink = 1, window = 8;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("sink", sink, "number of first key blocks that every row keeps");
    v("window", window, "number of last key blocks that every row keeps, with its own, which is always kept");
    blocks.visit(v);
  }
};

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

struct OracleOptions {
  double p = 0.95;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of a row's exact attention, averaged over its queries, that the kept blocks cover");
    blocks.visit(v);
  }
};

struct DenseOptions {
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    blocks.visit(v);
  }
};

/// Keeps the top p of  softmax(scale mean(q) . mean(k))  over the blocks that a row sees, without bands. Source: arXiv
/// 2602.08426, equations 1 and 2.
std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options);
/// Keeps blocks 0 to sink - 1 and the last `window` blocks up to the row's own. Source: arXiv 2309.17453.
std::unique_ptr<Selector> make_sink_window_selector(const SinkWindowOptions& options);
/// Keeps each block that a row sees with probability `share`, and the row's own block.
std::unique_ptr<Selector> make_random_selector(const RandomBlocksOptions& options);
/// Selects by the exact attention: as slow as attention itself, with the lowest possible density for its recall.
std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options);
/// Keeps all blocks.
std::unique_ptr<Selector> make_dense_selector(const DenseOptions& options);

}  // namespace prism
