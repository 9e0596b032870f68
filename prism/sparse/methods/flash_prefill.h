// FlashPrefill: scores every query against pooled keys and keeps the blocks near a row's largest share.
//
// Source: arXiv 2603.06199.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct FlashPrefillOptions {
  double alpha = 0.12;
  int64_t sink = 2, window = 4, last_dense = 2;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("alpha", alpha, "keep blocks whose estimated attention is at least this share of the highest in the row");
    v("sink", sink, "number of first key blocks that every row keeps");
    v("window", window,
      "number of most recent key blocks that every row keeps, including its own block, which is always kept");
    v("last_dense", last_dense, "number of last blocks of queries of a prompt that keep every block they see");
    blocks.visit(v);
  }
};

/// Row u keeps block v if w(u, v) >= alpha max_v w(u, v):
///
///   w(u, v) = sum over queries i of row u that see all of block v of exp(scale q_i . mean_v - their largest)
///
/// @throws InputError for options out of range.
std::unique_ptr<Selector> make_flash_prefill_selector(const FlashPrefillOptions& options);

}  // namespace prism
