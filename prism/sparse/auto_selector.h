// Sparse where that is faster, dense elsewhere: for a prompt, a layer, a head.
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
/// dense attention; then, head by head, dense where the blocks that it keeps would take longer. A mask that keeps all
/// where no head gains.
/// @param cost  of a shape; by default as measured on this machine.
/// @throws InputError as make_spectral_selector().
std::unique_ptr<Selector> make_auto_selector(const AutoOptions& options,
                                             std::function<PrefillCost(const PrefillShape&)> cost = prefill_cost);

}  // namespace prism
