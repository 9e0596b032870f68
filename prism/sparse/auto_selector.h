// Sparse where that is faster, dense elsewhere: decided for every layer and chunk of a prompt.
#pragma once

#include <functional>
#include <memory>

#include "prism/sparse/prefill_cost.h"
#include "prism/sparse/spectral.h"

namespace prism {

struct AutoOptions {
  double overhead = 0.015;
  SpectralOptions spectral = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("overhead", overhead, "share of dense attention's time that choosing may cost; where it would cost more: dense");
    spectral.visit(v);
  }
};

/// The spectral selector, where the cost model (prefill_cost.h) says that choosing takes no more than `overhead` of
/// dense attention, and that attention over what it keeps is faster than dense; else a mask that keeps all. A head that
/// keeps all its blocks costs as much among sparse ones as among dense ones, so the heads of a call are decided
/// together.
///
/// Chunks that stay dense unseen leave no trace in the selector's running energies: what later chunks keep depends on
/// how a prompt is cut.
/// @param cost  of a shape; by default as measured on this machine.
/// @throws InputError as make_spectral_selector().
std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options,
                                             std::function<PrefillCost(const PrefillShape&)> cost = prefill_cost);

}  // namespace prism
