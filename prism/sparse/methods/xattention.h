// XAttention: estimates attention by sums along the antidiagonals of blocks of scores.
//
// Source: arXiv 2503.16428.
#pragma once

#include <memory>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct XAttentionOptions {
  int64_t stride = 8;
  double threshold = 0.9;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("stride", stride, "side of the tiles in tokens, a divisor of the block sizes; larger is coarser and faster");
    v("threshold", threshold,
      "share of a row's estimated attention that the kept blocks cover, including the first block and the row's own, "
      "which are always kept");
    blocks.visit(v);
  }
};

/// Row u keeps the first block, its own block, and then the largest blocks until all kept blocks hold `threshold` of
/// the mass
///
///   a(u, v) = sum over groups of S queries i in u and of S keys j in v of softmax_j(sum_k q_(i S + S - 1 - k) . k_(j S
///   + k) scale / S)
///
/// @throws InputError for options out of range.
std::unique_ptr<Selector> make_xattention_selector(const XAttentionOptions& options);

}  // namespace prism
