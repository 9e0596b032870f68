#include "prism/analysis/activations.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>

#include "prism/kernels/euclidean_norm.h"

namespace prism {

void ActivationProbe::Squares::add(const torch::Tensor& values) {
  const auto norm = euclidean_norm(values).item<double>();
  sum += norm * norm;
  count += values.numel();
}

double ActivationProbe::Squares::root_mean() const {
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

ActivationProbe::Layer& ActivationProbe::at(size_t layer) {
  if (layers_.size() <= layer) layers_.resize(layer + 1);
  return layers_[layer];
}

void ActivationProbe::observe_residual(size_t layer, const torch::Tensor& stream_BTD) {
  const torch::NoGradGuard no_gradients;
  at(layer).residual.add(stream_BTD);
}

void ActivationProbe::observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) {
  const torch::NoGradGuard no_gradients;
  auto& hidden = at(layer).hidden;
  hidden.resize(hidden_BTF.size());
  for (size_t i = 0; i < hidden_BTF.size(); ++i) {
    const auto largest_F = hidden_BTF[i].abs().amax({0, 1}).to(torch::kFloat);
    auto& units = hidden[i];
    units.largest_F = units.largest_F.defined() ? torch::maximum(units.largest_F, largest_F) : largest_F;
    units.squares.add(hidden_BTF[i]);
  }
}

std::vector<LayerActivations> ActivationProbe::result() const {
  constexpr double kSilent = 1e-6;
  std::vector<LayerActivations> result;
  for (const auto& layer : layers_) {
    LayerActivations& found = result.emplace_back();
    found.layer = static_cast<int64_t>(result.size()) - 1;
    found.residual_rms = layer.residual.root_mean();
    for (const auto& units : layer.hidden) {
      const auto dead_F = units.largest_F <= kSilent * units.squares.root_mean();
      found.dead_units.push_back(dead_F.to(torch::kDouble).mean().item<double>());
    }
  }
  return result;
}

std::string stream_reader(size_t layer, size_t layers) {
  return layer < layers ? fmt::format("layer {}", layer) : "the LM head";
}

void FiniteProbe::look(const torch::Tensor& values, const char* what, size_t layer) {
  if (!place_.empty() || torch::isfinite(values).all().item<bool>()) return;
  place_ = fmt::format("{} {}", what, stream_reader(layer, layers_));
}

void FiniteProbe::observe_residual(size_t layer, const torch::Tensor& stream_BTD) {
  look(stream_BTD, "the residual stream before", layer);
}

void FiniteProbe::observe_attention(size_t layer, const AttentionInput& input) {
  look(input.q_BTHD, "the queries of", layer);
  look(input.kv.k_BGSD, "the keys of", layer);
  look(input.kv.v_BGSE, "the values of", layer);
}

void FiniteProbe::observe_hidden(size_t layer, const std::vector<torch::Tensor>& hidden_BTF) {
  for (const auto& hidden : hidden_BTF) look(hidden, "the feed-forward part of", layer);
}

std::string place_in_forward(size_t layers, const std::function<torch::Tensor(Probe&)>& loss) {
  const torch::NoGradGuard no_gradients;
  FiniteProbe probe(layers);
  const auto found = loss(probe);
  if (!probe.place().empty()) return probe.place();
  return torch::isfinite(found).all().item<bool>() ? "" : "the logits";
}

}  // namespace prism
