#include "prism/analysis/feed_forward/gates.h"

#include <ATen/Functions.h>

#include <cmath>
#include <utility>

#include "prism/core/random.h"

namespace prism {
namespace {

constexpr double kClosed = 0.01;  ///< share of the root mean square below which a gate counts as closed

}  // namespace

Bands find_bands(const torch::Tensor& values_PU) {
  const auto size_PU = values_PU.abs().to(torch::kDouble);
  const auto open_PU = size_PU.gt(0.5 * size_PU.amax(0, true));
  // A stretch begins at an open point whose predecessor is not open.
  const auto before_PU = at::cat({at::zeros_like(open_PU.narrow(0, 0, 1)), open_PU.narrow(0, 0, open_PU.size(0) - 1)});
  const auto points = static_cast<double>(values_PU.size(0));
  return {open_PU.logical_and(before_PU.logical_not()).sum(0).to(torch::kDouble),
          open_PU.sum(0).to(torch::kDouble) / points};
}

Bands bands_between(const FeedForward& mlp, const torch::Tensor& a_D, const torch::Tensor& b_D, int64_t points) {
  const auto a = a_D.to(torch::kFloat), b = b_D.to(torch::kFloat);
  const auto share_P1 = at::linspace(0, 1, points, a.options()).unsqueeze(1);
  return find_bands(mlp.gate(a + share_P1 * (b - a)).to(torch::kCPU));
}

GateProbe::GateProbe(const Trunk& model, const Options& options)
    : model_(model), options_(options), layers_(model.blocks.size()) {}

void GateProbe::sample(Layer& layer, size_t index, const torch::Tensor& input_ND) const {
  const auto wanted = static_cast<size_t>(2 * options_.pairs);
  for (int64_t n = 0; n < input_ND.size(0); ++n, ++layer.seen) {
    if (layer.inputs.size() < wanted) {
      layer.inputs.push_back(input_ND[n].clone());
      continue;
    }
    Random random(options_.seed + index, static_cast<uint64_t>(layer.seen));
    const auto place = random.below(static_cast<uint64_t>(layer.seen) + 1);
    if (place < wanted) layer.inputs[place] = input_ND[n].clone();
  }
}

void GateProbe::observe_feed_forward(size_t index, const torch::Tensor& input_ND, const torch::Tensor&) {
  const auto gate_NF = model_.blocks[index]->mlp->gate(input_ND.to(torch::kFloat));
  if (!gate_NF.defined()) return;
  auto& layer = layers_[index];
  const auto wide = gate_NF.to(torch::kDouble);
  if (!counts_) {
    layer.squares += wide.square().sum().item<double>();
    layer.gates += wide.numel();
    return sample(layer, index, input_ND);
  }
  const double least = kClosed * std::sqrt(layer.squares / static_cast<double>(layer.gates));
  layer.closed += wide.abs().lt(least).sum().item<int64_t>();
}

std::vector<LayerGates> GateProbe::result() const {
  std::vector<LayerGates> found;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    if (layer.gates == 0) continue;
    auto& gates = found.emplace_back();
    gates.layer = static_cast<int64_t>(i);
    gates.gate_rms = std::sqrt(layer.squares / static_cast<double>(layer.gates));
    gates.closed_share = static_cast<double>(layer.closed) / static_cast<double>(layer.gates);
    auto inputs = layer.inputs;
    Random random(options_.seed, i);
    for (size_t n = inputs.size(); n > 1; --n) std::swap(inputs[n - 1], inputs[random.below(n)]);
    double bands = 0, width = 0;
    int64_t lines = 0;
    for (size_t n = 0; n + 1 < inputs.size(); n += 2, ++gates.pairs) {
      const auto open = bands_between(*model_.blocks[i]->mlp, inputs[n], inputs[n + 1], options_.points);
      bands += open.number_U.sum().item<double>();
      width += open.width_U.sum().item<double>();
      lines += open.number_U.numel();
    }
    if (lines == 0) continue;
    gates.bands = bands / static_cast<double>(lines);
    if (bands > 0) gates.band_width = width / bands;
  }
  return found;
}

}  // namespace prism
