// Sparse where that is faster, dense elsewhere: decided for every layer and chunk of a prompt.
#pragma once

#include <memory>

#include "prism/sparse/prefill_cost.h"
#include "prism/sparse/spectral.h"

namespace prism {

struct AutoOptions {
  double overhead = 0.015;
  SpectralOptions spectral = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("overhead", overhead, "dense if probing a few rows would cost more than this share of dense attention's time");
    spectral.visit(v);
  }
};

/// The spectral selector where that is faster than dense by the cost model (prefill_cost.h); else a mask that keeps
/// all. Nothing is measured: the same input and costs give the same mask.
///
/// Up to four rows of each head are asked first, one of eight in short prompts, unless even that would take more than
/// `overhead` of dense attention's time. All rows are asked if what those keep promises that choosing and attending
/// together take 3% less than dense attention; choosing done, their mask is used if attending alone does. Heads are
/// decided together: one that keeps all its blocks costs as much among sparse ones as among dense ones. Dense too where
/// attend() could not leave out blocks, as on a GPU, and where no features turn.
///
/// Chunks that stay dense leave no trace in the selector's running energies: what later chunks keep depends on how a
/// prompt is cut.
/// @param costs  of the shapes that will be asked for. Attention of others is dense, and notes() says so.
/// @throws InputError as make_spectral_selector().
std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options, PrefillCosts costs = {});

}  // namespace prism
