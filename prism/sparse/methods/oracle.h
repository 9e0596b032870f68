// Selector by the exact attention, the bound for all others.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct OracleOptions {
  double p = 0.95;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of a row's exact attention, averaged over its queries, that the kept blocks cover");
    blocks.visit(v);
  }
};

/// Selects by the exact attention: as slow as attention itself, with the lowest possible density for its recall.
std::unique_ptr<Selector> make_oracle_selector(const OracleOptions& options);

}  // namespace prism
