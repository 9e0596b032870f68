#include "prism/training/tensorboard.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "prism/checkpoint/weight_map.h"

namespace prism {
namespace {

constexpr int64_t kParts = 30;              ///< of a histogram
constexpr int64_t kMostValues = 64 * 1024;  ///< that one is drawn from

/// Of the values that are finite, evenly spaced ones of a large tensor; no parts where none is finite.
ValueHistogram histogram_of(const torch::Tensor& values) {
  const auto all = values.detach().reshape({-1});
  // An odd spacing meets every column of a matrix whose width is a power of two.
  const int64_t spacing = (all.numel() + kMostValues - 1) / kMostValues | 1;
  const auto flat = all.slice(0, 0, std::nullopt, spacing).to(torch::kFloat);
  const auto finite = flat.index({torch::isfinite(flat)});
  ValueHistogram result;
  if (finite.numel() == 0) return result;
  result.low = finite.min().item<double>();
  result.high = finite.max().item<double>();
  // Equal values need parts of some width too.
  if (result.low == result.high) result.high = result.low + std::max(1e-12, 1e-6 * std::abs(result.low));
  const auto counts = at::histc(finite, kParts, result.low, result.high).to(torch::kLong).cpu();
  const auto* first = counts.const_data_ptr<int64_t>();
  result.counts.assign(first, first + kParts);
  result.sum = finite.sum(torch::kDouble).item<double>();
  result.squares = finite.square().sum(torch::kDouble).item<double>();
  return result;
}

}  // namespace

void TensorBoard::add(const Json& record) {
  const std::string kind = record.value("kind", "");
  const auto step = record.value("step", int64_t{0});
  const auto scalar = [&](const char* field, const std::string& tag) {
    if (const auto value = record.find(field); value != record.end() && value->is_number())
      events_.scalar(step, tag, value->get<double>());
  };
  const auto loss = [&](const char* field, const std::string& group) {
    scalar(field, group + "/loss");
    if (const auto value = record.find(field); value != record.end() && value->is_number())
      events_.scalar(step, group + "/perplexity", std::exp(value->get<double>()));
  };
  if (kind == "train") {
    loss("loss", "train");
    for (const char* field : {"learning_rate", "grad_norm", "tokens_per_s"})
      scalar(field, std::string("train/") + field);
  } else if (kind == "eval") {
    loss("val_loss", "valid");
  } else if (kind == "sample") {
    samples_ = step == sample_step_ ? samples_ + 1 : 0;
    sample_step_ = step;
    events_.text(step, fmt::format("sample/{}", samples_),
                 fmt::format("{}{}\n\n(temperature {})", record.value("prompt", ""), record.value("text", ""),
                             record.value("temperature", 0.0)));
  } else if (kind == "warning") {
    events_.text(step, "warning", record.value("text", ""));
  } else if (kind == "diverged") {
    const auto place = record.value("place", "");
    events_.text(step, "warning", place.empty() ? "diverged" : "diverged, first in " + place);
  } else if (kind == "diagnostics") {
    add_diagnostics(step, record);
  }
  events_.flush();
}

void TensorBoard::add_layers(int64_t step, const Json& layers, const char* name, const char* tag) {
  for (size_t l = 0; l < layers.size(); ++l)
    if (const auto& value = layers[l].at(name); value.is_number())
      events_.scalar(step, fmt::format("{}/layer_{}", tag, l), value.get<double>());
}

void TensorBoard::add_diagnostics(int64_t step, const Json& record) {
  const auto& activations = record.at("activations");
  const auto& entropy = record.at("entropy");
  add_layers(step, entropy, "entropy", "entropy");
  for (size_t l = 0; l < entropy.size(); ++l) {
    const auto& heads = entropy[l].at("head_entropies");
    for (size_t h = 0; h < heads.size() && heads.size() > 1; ++h)
      if (heads[h].is_number())
        events_.scalar(step, fmt::format("entropy/layer_{}/head_{}", l, h), heads[h].get<double>());
  }
  add_layers(step, activations, "residual_rms", "residual_rms");
  for (size_t l = 0; l < activations.size(); ++l) {
    const auto& shares = activations[l].at("dead_units");
    double sum = 0;
    for (const auto& share : shares) sum += share.get<double>();
    if (!shares.empty())
      events_.scalar(step, fmt::format("dead_units/layer_{}", l), sum / static_cast<double>(shares.size()));
  }
  for (const auto& parameter : record.at("parameters"))
    if (const auto& update = parameter.at("update"); update.is_number())
      events_.scalar(step, "update/" + parameter.at("name").get<std::string>(), update.get<double>());
}

void TensorBoard::add_parameters(int64_t step, const std::vector<WeightEntry>& weights) {
  const torch::NoGradGuard no_gradients;
  const auto values = file_tensors(weights), gradients = file_gradients(weights);
  for (size_t i = 0; i < values.size(); ++i) {
    events_.histogram(step, "weights/" + values[i].name, histogram_of(values[i].tensor));
    if (const auto& gradient = gradients[i].tensor; gradient.defined())
      events_.histogram(step, "gradients/" + values[i].name, histogram_of(gradient));
  }
  events_.flush();
}

}  // namespace prism
