// What the gates of feed-forward parts do with a text: how many are closed, and along which stretches they open.
//
//   GateProbe probe(*decoder);
//   context.probe = &probe;
//   decoder(tokens_BT, context);                 // any number of passes, which measure the size of gates
//   probe.count();
//   decoder(tokens_BT, context);                 // the same passes again
//   for (const auto& layer : probe.result()) fmt::print("{} {:.3f}\n", layer.layer, layer.closed_share);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "prism/attention/probe.h"
#include "prism/models/trunk.h"

namespace prism {

struct LayerGates {
  int64_t layer = 0;
  double gate_rms = 0, closed_share = 0, bands = std::numeric_limits<double>::quiet_NaN(), band_width = bands;
  int64_t pairs = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("layer", layer, "layer, counted from 0");
    v("gate_rms", gate_rms, "root mean square of the gates over tokens and units");
    v("closed_share", closed_share, "share of gates whose magnitude is below 1% of gate_rms");
    v("pairs", pairs, "number of pairs of tokens whose inputs were joined by a straight line");
    v("bands", bands,
      "along these lines, number of stretches in which a unit's gate exceeds half its largest magnitude there; mean "
      "over "
      "units and pairs");
    v("band_width", band_width, "mean width of these stretches, as a share of the line");
  }
};

/// Number and total width of the stretches of each column of values [points, units] with magnitudes above half the
/// column's largest. A width is the share of the points. Columns of zeros have none.
struct Bands {
  torch::Tensor number_U, width_U;  ///< float64
};
Bands find_bands(const torch::Tensor& values_PU);
/// The bands of a gated part's units between two inputs [d_model], at `points` equidistant inputs, in float32.
Bands bands_between(const FeedForward& mlp, const torch::Tensor& a_D, const torch::Tensor& b_D, int64_t points);

/// Measures the gates of all layers that have them (FeedForward::gate()). Reads a layer's inputs, so it serves any
/// model.
class GateProbe : public Probe {
 public:
  /// Bands are measured on the lines between `pairs` pairs of tokens, drawn by `seed`, at `points` equidistant inputs.
  struct Options {
    int64_t pairs = 64, points = 257;
    uint64_t seed = 1;
  };
  explicit GateProbe(const Trunk& model) : GateProbe(model, Options()) {}
  GateProbe(const Trunk& model, const Options& options);

  void observe_feed_forward(size_t layer, const torch::Tensor& input_ND, const torch::Tensor& output_ND) override;
  /// Begins the second run over the same passes, which counts closed gates.
  void count() { counts_ = true; }

  /// The layers that have gates, first to last. Empty if no layer has them.
  std::vector<LayerGates> result() const;

 private:
  struct Layer {
    double squares = 0;
    int64_t gates = 0, closed = 0;
    std::vector<torch::Tensor> inputs;  ///< [D] of sampled tokens
    int64_t seen = 0;
  };
  /// Keeps a uniform sample of the tokens (reservoir sampling).
  void sample(Layer& layer, size_t index, const torch::Tensor& input_ND) const;

  const Trunk& model_;
  Options options_;
  bool counts_ = false;
  std::vector<Layer> layers_;
};

}  // namespace prism
