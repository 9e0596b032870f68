#include "prism/analysis/spectrum_probe.h"

#include "prism/attention/rotary.h"
#include "prism/core/error.h"

namespace prism {

void SpectrumProbe::observe_attention(size_t layer, const AttentionInput& input) {
  const auto& config = layers_.at(layer);
  add({input.q_BTHD[0].cpu(), input.kv.k_BGSD[0].cpu(),
       config.rotary.turns() ? rotary_pairs(config.rotary, config.head_dim) : RotaryPairs{}});
}

void SpectrumProbe::add(const LayerTensors& layer) {
  PRISM_CHECK(!layer.pairs.angles.empty(), "analyse",
              "expected layers with a rotary encoding; found layer {} without one; name another model or file.",
              spectra_.size());
  if (options_.kept_layer == static_cast<int64_t>(spectra_.size()))
    kept_ = {layer.q_THD.clone(), layer.k_GSD.clone(), layer.pairs};
  auto& heads = spectra_.emplace_back();
  for (int64_t h = 0; h < layer.heads(); ++h)
    heads.push_back(measure_spectrum(layer.q(h), layer.k(h), layer.pairs, options_.block));
}

}  // namespace prism
