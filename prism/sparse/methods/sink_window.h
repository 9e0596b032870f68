// Selector of the first and the last blocks.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct SinkWindowOptions {
  int64_t sink = 1, window = 8;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("sink", sink, "number of first key blocks that every row keeps");
    v("window", window,
      "number of most recent key blocks that every row keeps, including its own block, which is always kept");
    blocks.visit(v);
  }
};

/// Keeps blocks 0 to sink - 1 and the last `window` blocks up to the row's own. Source: arXiv 2309.17453.
std::unique_ptr<Selector> make_sink_window_selector(const SinkWindowOptions& options);

}  // namespace prism
