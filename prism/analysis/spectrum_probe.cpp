#include "prism/analysis/spectrum_probe.h"

#include <cmath>

#include "prism/attention/rotary.h"
#include "prism/core/error.h"
#include "prism/sparse/methods/pooled/bands.h"

namespace prism {

std::vector<BandMap> band_maps(const LayerTensors& layer, int64_t head, int64_t cells) {
  const double scale = 1 / std::sqrt(static_cast<double>(layer.pairs.head_dim));
  auto bands = paper_bands(layer.pairs);
  bands.push_back({"full", all_features(layer.pairs.head_dim)});
  const auto k_SD = layer.k(head);
  std::vector<BandMap> maps;
  for (const auto& band : bands)
    maps.push_back({band.name, band_attention(layer.q(head), k_SD, band.features, scale, cells),
                    tokens_of_cell(k_SD.size(0), cells)});
  return maps;
}

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
