// MInference's vertical-slash pattern: keeps some columns and some diagonals of the attention matrix.
//
// Source: arXiv 2407.02490.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/head_by_head.h"

namespace prism {

struct VerticalSlashOptions {
  int64_t vertical = 1000, slash = 6096;
  BlockSizes blocks = {.block_size = 64};
  template <class Visitor>
  void visit(Visitor& v) {
    v("vertical", vertical,
      "number of keys (columns) that every query keeps, at least 30; the first 30 keys are always kept");
    v("slash", slash,
      "number of distances (diagonals) that every query keeps, at least 50; distances 0 to 99 are chosen before all "
      "others");
    blocks.visit(v);
  }
};

/// The keys (columns) and distances chosen for a head, ascending. The block mask rounds both up to whole blocks.
struct VerticalSlash {
  std::vector<int64_t> columns, distances;
};

/// Number of pairs of a query and a key that it sees which a column or distance of the pattern covers.
int64_t held_pairs(const HeadBlocks& head, const VerticalSlash& pattern);

/// Chooses the columns and distances with the most attention from the last 64 queries.
VerticalSlash choose_vertical_slash(const HeadInput& head, const VerticalSlashOptions& options);

/// @throws InputError for options out of range.
std::unique_ptr<Selector> make_vertical_slash_selector(const VerticalSlashOptions& options);

}  // namespace prism
