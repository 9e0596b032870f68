// MInference's vertical-slash pattern: some columns and some diagonals of the attention matrix.
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
      "number of distances (diagonals) that every query keeps, at least 50; the first 100 are taken before others");
    blocks.visit(v);
  }
};

/// What the method chooses for a head: keys and distances, ascending. The block mask rounds both up to whole blocks.
struct VerticalSlash {
  std::vector<int64_t> columns, distances;
};

/// Pairs of a query and a key that it sees that a column or a distance holds.
int64_t held_pairs(const HeadBlocks& head, const VerticalSlash& pattern);

/// The columns and distances with most attention from the last 64 queries.
VerticalSlash choose_vertical_slash(const HeadInput& head, const VerticalSlashOptions& options);

/// @throws InputError for numbers that make no sense.
std::unique_ptr<Selector> make_vertical_slash_selector(const VerticalSlashOptions& options);

}  // namespace prism
