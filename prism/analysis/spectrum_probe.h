// The spectra of all heads of a model, measured while it runs.
//
//   SpectrumProbe probe(decoder->config().layers, {.block = 128, .kept_layer = 3});
//   context.probe = &probe;
//   decoder(tokens_BT, context);                  // one pass; the first sequence is measured
//   probe.spectra()[3][0].zone("dead");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/analysis/spectrum.h"
#include "prism/attention/layer_config.h"
#include "prism/attention/probe.h"

namespace prism {

/// Queries and keys of the heads of a layer, for one sequence.
struct LayerTensors {
  torch::Tensor q_THD, k_GSD;
  RotaryPairs pairs;

  int64_t heads() const { return q_THD.size(1); }
  torch::Tensor q(int64_t head) const { return q_THD.select(1, head); }
  torch::Tensor k(int64_t head) const { return k_GSD[head * k_GSD.size(0) / heads()]; }
};

/// Where some features of a head attend to.
struct BandMap {
  std::string name;         ///< high, low (paper_bands()), or full: all features
  torch::Tensor shares_MN;  ///< see band_attention()
  int64_t cell_tokens = 1;  ///< tokens per cell
};

/// The attention of a head from the features of each band and from all features. @param cells  as band_attention().
std::vector<BandMap> band_maps(const LayerTensors& layer, int64_t head, int64_t cells);

struct SpectrumOptions {
  int64_t block = 128;                     ///< tokens per block, over which means are taken
  std::optional<int64_t> kept_layer = {};  ///< the layer whose tensors are kept, e.g. for drawing
};

class SpectrumProbe : public Probe {
 public:
  /// @param layers  of the model; empty if all layers are given to add().
  SpectrumProbe(std::vector<LayerConfig> layers, const SpectrumOptions& options)
      : layers_(std::move(layers)), options_(options) {}

  void observe_attention(size_t layer, const AttentionInput& input) override;

  /// Measures the next layer. @throws InputError if it has no rotary encoding.
  void add(const LayerTensors& layer);

  /// The spectrum of each head of each layer.
  const std::vector<std::vector<HeadSpectrum>>& spectra() const { return spectra_; }

  /// The tensors of options.kept_layer.
  const LayerTensors& kept() const { return kept_; }

 private:
  std::vector<LayerConfig> layers_;
  SpectrumOptions options_;
  std::vector<std::vector<HeadSpectrum>> spectra_;
  LayerTensors kept_;
};

}  // namespace prism
