// FlexPrefill: classifies each head as query-aware or vertical-slash and gives it a budget that holds a share of the
// attention.
//
// Source: arXiv 2502.20766.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/head_by_head.h"

namespace prism {

struct FlexPrefillOptions {
  double gamma = 0.9, tau = 0.1;
  int64_t min_budget = 512;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("gamma", gamma, "share of the estimated attention that the kept keys cover");
    v("tau", tau,
      "for the last queries, attention per key block is computed exactly and estimated from averaged queries and keys; "
      "if the two differ by less than this (square root of the Jensen-Shannon divergence), the head chooses blocks for "
      "each row; otherwise the last queries choose columns and diagonals for all rows");
    v("min_budget", min_budget,
      "minimum number of keys that every row keeps; prompts of at most this many keys, or of at most 256, stay dense");
    blocks.visit(v);
  }
};

/// The square root of the Jensen-Shannon divergence, in nats, between two attention distributions over key blocks: that
/// of the pooled last queries over pooled keys, and that of the last queries, summed over each block's keys. Below tau
/// the head is query-aware.
double pooling_divergence(const HeadInput& head);

/// @throws InputError for options out of range.
std::unique_ptr<Selector> make_flex_prefill_selector(const FlexPrefillOptions& options);

}  // namespace prism
