// The spectral selector: two bands of rotary pairs choose key blocks, each by its own softmax over pooled queries and
// keys.
//
// Source: arXiv 2602.08426. Where the paper's code and text differ or are unclear, docs/papers.md says what prism does.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

struct SpectralOptions {
  double p = 0.95, p_high = 0, p_low = 0;
  std::string bands = "paper";
  int64_t high_dims = 0, low_dims = 0;
  std::string calibration = "causal_running", tail = "exact";
  int64_t sink = 1, recent = 1, last_dense = 0;
  BlockSizes blocks = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("p", p, "share of each band's softmax that the kept blocks hold");
    v("p_high", p_high, "of the fast pairs' alone; 0: p");
    v("p_low", p_low, "of the slow pairs' alone; 0: p");
    v("bands", bands, "paper: by high_dims and low_dims; auto: by what pooling leaves of each pair of this model");
    v("high_dims", high_dims, "features of the fast pairs; 0: half of those that turn");
    v("low_dims", low_dims, "features of the slow pairs; 0: three quarters");
    v("calibration", calibration,
      "temperatures by energies over: causal_running, the blocks up to the row, the same wherever a prompt is cut "
      "at multiples of both block sizes; all_blocks, as the reference; off");
    v("tail", tail, "mean of a block that is not whole: exact, or padded, with zeros, as the reference");
    v("sink", sink, "first key blocks that every row keeps");
    v("recent", recent, "last key blocks that every row keeps, from its own on");
    v("last_dense", last_dense, "last rows of a prompt that keep all they see");
    blocks.visit(v);
  }
};

/// Scores are scaled by 1 / sqrt(D) and calibrated, independent of the attention's scale (SelectorInput::scale).
/// @throws InputError for unknown names and values out of range.
std::unique_ptr<Selector> make_spectral_selector(const SpectralOptions& options);

}  // namespace prism
