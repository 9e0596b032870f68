// The cost model of sparse and dense attention, on which the selector `auto` bases its decision. bench/prefill_cost.h
// measures the costs.
//
//   const PrefillCosts costs = {{{.type = torch::kBFloat16, .head_dim = 128}, cost}};
//   const double dense = cost.dense_seconds(pairs, rows), sparse = cost.sparse_seconds(kept_work(lengths, mask), rows);
#pragma once

#include <torch/types.h>

#include <compare>
#include <cstdint>
#include <map>
#include <span>

#include "prism/sparse/selector.h"

namespace prism {

/// The properties of a call, besides the machine, that its costs depend on.
struct PrefillShape {
  torch::ScalarType type = torch::kBFloat16;
  int64_t head_dim = 128, query_block = 128, key_block = 128;
  // NOLINTNEXTLINE(modernize-use-nullptr): there is no pointer
  friend auto operator<=>(const PrefillShape&, const PrefillShape&) = default;
};

/// What attention over kept blocks computes.
struct KeptWork {
  double pairs = 0;  ///< of a query and a key that it sees
  double runs = 0;   ///< of neighbouring kept blocks, over all rows: a row with blocks 0, 1, 2 and 7 has two
};

/// Costs in seconds, with all threads running. A pair is a query and a key that it sees, of one head; a row is a block
/// of queries. Each run costs extra because it starts and ends within a tile of keys, and a tile that is partly filled
/// takes longer per pair.
struct PrefillCost {
  double dense_pair = 0, dense_row = 0;                    ///< of dense attention
  double sparse_pair = 0, sparse_run = 0, sparse_row = 0;  ///< of attention over kept blocks
  /// Costs of the spectral selector: per call, per token of a head, per pair of a pooled query and a pooled key.
  double select_call = 0, select_token = 0, select_pair = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("dense_pair", dense_pair, "seconds of dense attention per pair of query and key");
    v("dense_row", dense_row, "additional seconds per row of query blocks");
    v("sparse_pair", sparse_pair, "seconds of block-sparse attention per kept pair");
    v("sparse_run", sparse_run, "additional seconds per run of neighbouring kept blocks");
    v("sparse_row", sparse_row, "additional seconds per row of query blocks");
    v("select_call", select_call, "seconds of the spectral selector per call");
    v("select_token", select_token, "additional seconds per token of a head");
    v("select_pair", select_pair, "additional seconds per pair of pooled query and pooled key");
  }

  double dense_seconds(double pairs, double rows) const { return pairs * dense_pair + rows * dense_row; }
  double sparse_seconds(const KeptWork& kept, double rows) const {
    return kept.pairs * sparse_pair + kept.runs * sparse_run + rows * sparse_row;
  }
  double select_seconds(double calls, double tokens, double pooled_pairs) const {
    return calls * select_call + tokens * select_token + pooled_pairs * select_pair;
  }
};

/// The measured costs of a machine.
using PrefillCosts = std::map<PrefillShape, PrefillCost>;

/// The work of row `row` with the key blocks `kept`, which ascend.
KeptWork kept_work(const HeadBlocks& blocks, int64_t row, std::span<const int32_t> kept);

/// The same over all rows of all heads of a mask.
KeptWork kept_work(const SelectorLengths& lengths, const BlockMask& mask);

}  // namespace prism
