// Selector of all blocks.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct DenseOptions {
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    blocks.visit(v);
  }
};

/// Keeps all blocks.
std::unique_ptr<Selector> make_dense_selector(const DenseOptions& options);

}  // namespace prism
