// Sparse attention where it is faster, else dense; decided for every layer and chunk of a prompt.
#pragma once

#include <memory>

#include "prism/sparse/methods/pooled/spectral.h"
#include "prism/sparse/prefill_cost.h"

namespace prism {

struct AutoOptions {
  double overhead = 0.015;
  SpectralOptions spectral = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("overhead", overhead,
      "auto first tries a few rows, to see how many blocks spectral would keep; if this trial alone would take more "
      "than "
      "this share of the time of dense attention, auto uses dense attention at once");
    spectral.visit(v);
  }
};

/// Uses the spectral selector where the cost model (prefill_cost.h) says it is faster than dense attention, else a mask
/// that keeps all blocks. Nothing is measured: the same input and costs give the same mask.
///
/// The decision takes three steps:
///   1. Sample one row in eight of those that are not always dense (last_dense), at least one and at most four for each
///      head. If there are none, or if even that would take more than `overhead` of dense attention's time, stay dense.
///   2. If the samples predict that attention over the kept blocks takes 3% less time than dense attention, with the
///      cost of selection counted twice, select blocks for all rows.
///   3. Use the resulting mask if attention alone takes 3% less time than dense attention.
///
/// All heads are decided together, because a head that keeps all its blocks costs the same with either mask. Attention
/// is also dense if attend() cannot skip blocks, as on a GPU, or if no features turn.
///
/// Dense chunks do not update the selector's running energies, so what later chunks keep depends on how the prompt is
/// cut into chunks.
/// @param costs  measured costs by shape. Attention of other shapes is dense, and notes() says so.
/// @throws InputError as make_spectral_selector().
std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options, PrefillCosts costs = {});

}  // namespace prism
