// Selectors to compare with: what needs no method, and what knows everything.
#pragma once

#include <memory>

#include "prism/sparse/selector.h"

namespace prism {

struct MeanPoolingOptions {
  double p = 0.95;
  int64_t sink = 1, recent = 1, query_block = 128, key_block = 128;
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of the softmax over pooled keys that the kept blocks hold");
    v("sink", sink, "first key blocks that every row keeps");
    v("recent", recent, "last key blocks that every row keeps, from its own on");
    v("query_block", query_block, "queries of a row: 32, 64, 128 or 256");
    v("key_block", key_block, "keys of a block: 32, 64, 128 or 256");
  }
};

struct SinkWindowOptions {
  int64_t sink = 1, window = 8, query_block = 128, key_block = 128;
  template <class Visitor>
  void visit(Visitor& v) {
    v("sink", sink, "first key blocks that every row keeps");
    v("window", window, "last key blocks that every row keeps, its own among them");
    v("query_block", query_block, "queries of a row: 32, 64, 128 or 256");
    v("key_block", key_block, "keys of a block: 32, 64, 128 or 256");
  }
};

struct RandomBlocksOptions {
  double share = 0.25;
  int64_t seed = 1, sink = 1, query_block = 128, key_block = 128;
  template <class Visitor>
  void visit(Visitor& v) {
    v("share", share, "of the blocks that a row sees, each kept by chance");
    v("seed", seed, "of the draw, the same for all heads");
    v("sink", sink, "first key blocks that every row keeps");
    v("query_block", query_block, "queries of a row: 32, 64, 128 or 256");
    v("key_block", key_block, "keys of a block: 32, 64, 128 or 256");
  }
};

struct OracleOptions {
  double p = 0.95;
  int64_t query_block = 128, key_block = 128;
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of a row's exact attention, its mean over the queries, that the kept blocks hold");
    v("query_block", query_block, "queries of a row: 32, 64, 128 or 256");
    v("key_block", key_block, "keys of a block: 32, 64, 128 or 256");
  }
};

struct DenseOptions {
  int64_t query_block = 128, key_block = 128;
  template <class Visitor>
  void visit(Visitor& v) {
    v("query_block", query_block, "queries of a row: 32, 64, 128 or 256");
    v("key_block", key_block, "keys of a block: 32, 64, 128 or 256");
  }
};

/// softmax(scale mean(q) . mean(k)) over the blocks that a row sees, all features alike.
std::unique_ptr<Selector> make_mean_pooling_selector(const MeanPoolingOptions& options);
std::unique_ptr<Selector> make_sink_window_selector(const SinkWindowOptions& options);
std::unique_ptr<Selector> make_random_selector(const RandomBlocksOptions& options);
/// By the exact attention: as slow as attention itself, and the least density at its recall.
std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options);
std::unique_ptr<Selector> make_dense_selector(const DenseOptions& options);

}  // namespace prism
