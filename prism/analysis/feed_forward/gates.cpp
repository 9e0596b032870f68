#include "prism/analysis/feed_forward/gates.h"

#include <ATen/Functions.h>

#include <cmath>

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

void GateProbe::observe_feed_forward(size_t index, const torch::Tensor& input_BTD, const torch::Tensor&) {
  const auto gate_BTF = model_.blocks[index]->mlp->gate(input_BTD);
  if (!gate_BTF.defined()) return;
  auto& layer = layers_[index];
  const auto wide = gate_BTF.to(torch::kDouble);
  if (!counts_) {
    layer.squares += wide.square().sum().item<double>();
    layer.gates += wide.numel();
    return sample(layer, index, input_BTD.flatten(0, 1));
  }
  const double least = kClosed * std::sqrt(layer.squares / static_cast<double>(layer.gates));
  layer.closed += wide.abs().lt(least).sum().item<int64_t>();
}

std::vector<LayerGates> GateProbe::result() const {
  std::vector<LayerGates> found;
  const auto share_P1 = at::linspace(0, 1, options_.points, torch::kFloat).unsqueeze(1);
  for (size_t i = 0; i < layers_.size(); ++i) {
    const auto& layer = layers_[i];
    if (layer.gates == 0) continue;
    auto& gates = found.emplace_back();
    gates.layer = static_cast<int64_t>(i);
    gates.gate_rms = std::sqrt(layer.squares / static_cast<double>(layer.gates));
    gates.closed_share = static_cast<double>(layer.closed) / static_cast<double>(layer.gates);
    double bands = 0, width = 0;
    int64_t lines = 0;
    for (size_t pair = 0; pair + 1 < layer.inputs.size(); pair += 2) {
      const auto type = layer.inputs[pair].scalar_type();
      const auto a = layer.inputs[pair].to(torch::kFloat), b = layer.inputs[pair + 1].to(torch::kFloat);
      const auto on_line = a + share_P1.to(a.device()) * (b - a);
      const auto open = find_bands(model_.blocks[i]->mlp->gate(on_line.to(type)).to(torch::kCPU));
      bands += open.number_U.sum().item<double>();
      width += open.width_U.sum().item<double>();
      lines += open.number_U.numel();
    }
    if (lines == 0) continue;
    gates.bands = bands / static_cast<double>(lines);
    gates.band_width = bands > 0 ? width / bands : 0;
  }
  return found;
}

}  // namespace prism
