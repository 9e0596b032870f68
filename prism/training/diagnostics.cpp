#include "prism/training/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {
namespace {

double norm_of(const torch::Tensor& values) {
  return euclidean_norm(values).item<double>();
}

}  // namespace

StepDiagnostics::StepDiagnostics(Objective& objective, const ModelConfig& model, int64_t batch)
    : objective_(objective) {
  const torch::NoGradGuard no_gradients;
  AttentionEntropyProbe entropy(model.layers);
  ActivationProbe activations;
  Probes both({&entropy, &activations});
  objective.forward(batch, {.probe = &both, .rows = std::clamp(kTokens / model.context, int64_t{1}, kSequences)});
  report_.entropy = entropy.result();
  report_.activations = activations.result();
  report_.parameters = measure_parameters(objective.weights());
  for (const auto& row : file_tensors(objective.weights())) before_.push_back(row.tensor.detach().clone());
}

StepReport StepDiagnostics::finish() {
  PRISM_ASSERT(!before_.empty(), "diagnostics", "a step that is finished twice");
  const torch::NoGradGuard no_gradients;
  const auto rows = file_tensors(objective_.weights());
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& parameter = report_.parameters[i];
    if (parameter.weight > 0) parameter.update = norm_of(rows[i].tensor - before_[i]) / parameter.weight;
  }
  before_.clear();
  return std::move(report_);
}

std::vector<ParameterUpdate> measure_parameters(const std::vector<WeightEntry>& weights) {
  const torch::NoGradGuard no_gradients;
  std::vector<ParameterUpdate> parameters;
  const auto values = file_tensors(weights), gradients = file_gradients(weights);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& gradient = gradients[i].tensor;
    parameters.push_back({values[i].name, gradient.defined() ? norm_of(gradient) : 0, norm_of(values[i].tensor), 0});
  }
  return parameters;
}

std::string place_of_divergence(Objective& objective, const ModelConfig& model, int64_t first, int64_t count) {
  const torch::NoGradGuard no_gradients;
  for (int64_t batch = first; batch < first + count; ++batch) {
    const auto place = place_in_forward(model.layers.size(), [&](Probe& probe) {
      return objective.loss(batch, objective.forward(batch, {.probe = &probe}));
    });
    if (!place.empty()) return place;
  }
  // The backward pass goes from the head to the embedding.
  const auto gradients = file_gradients(objective.weights());
  for (auto row = gradients.rbegin(); row != gradients.rend(); ++row)
    if (row->tensor.defined() && !torch::isfinite(row->tensor).all().item<bool>())
      return "the gradient of " + row->name;
  return "";
}

DivergenceWatch::DivergenceWatch(const std::vector<WeightEntry>& weights) {
  for (const auto& entry : weights)
    if (entry.traits.role == WeightRole::bias)
      for (const auto& tensor : entry.tensors) biases_.insert(tensor.name);
}

std::vector<WarningRecord> DivergenceWatch::look(double loss) {
  constexpr double kDecay = 0.9, kRise = 1.5, kRiseNats = 1, kDeviations = 6;
  if (trend_.mean < 0) trend_.mean = trend_.least = loss;
  std::vector<WarningRecord> warnings;
  const double rise = std::max({(kRise - 1) * trend_.least, kRiseNats, kDeviations * std::sqrt(trend_.variance)});
  if (loss > trend_.least + rise && said_.insert("loss").second)
    warnings.push_back({"loss", fmt::format("the loss is {:.3g}, up from {:.3g} at its lowest; a lower "
                                            "train.learning_rate, a longer warm-up or norm rms usually helps",
                                            loss, trend_.least)});
  const double difference = loss - trend_.mean;
  trend_.mean += (1 - kDecay) * difference;
  trend_.variance = kDecay * trend_.variance + (1 - kDecay) * difference * difference;
  trend_.least = std::min(trend_.least, trend_.mean);
  return warnings;
}

std::vector<WarningRecord> DivergenceWatch::look(const StepReport& report) {
  constexpr double kLargeRms = 100, kGrowth = 2, kWholeWeight = 1, kOneHot = 0.02, kCollapse = 0.1;
  std::vector<WarningRecord> warnings;
  const auto say_once = [&](const std::string& sign, const std::string& sentence) {
    if (said_.insert(sign).second) warnings.push_back({sign, sentence});
  };
  for (size_t i = 0; i < std::min(last_rms_.size(), report.activations.size()); ++i) {
    const double rms = report.activations[i].residual_rms, before = last_rms_[i];
    if (rms > kLargeRms && rms > kGrowth * before)
      say_once("residual",
               fmt::format("the residual stream before {} grows: its root mean square is {:.3g}, up from {:.3g}; a "
                           "lower train.learning_rate or norm rms usually helps",
                           stream_reader(i, report.entropy.size()), rms, before));
  }
  last_rms_.clear();
  for (const auto& layer : report.activations) last_rms_.push_back(layer.residual_rms);
  for (const auto& parameter : report.parameters)
    if (parameter.update > kWholeWeight && !biases_.contains(parameter.name))
      say_once("update", fmt::format("one step changed {} by {:.3g} times its norm; a lower train.learning_rate or a "
                                     "longer warm-up usually helps",
                                     parameter.name, parameter.update));
  for (size_t i = 0; i < report.entropy.size(); ++i) {
    const double entropy = report.entropy[i].entropy;
    if (i >= first_entropy_.size()) first_entropy_.push_back(entropy);
    if (entropy < kOneHot && entropy < kCollapse * first_entropy_[i])
      say_once(fmt::format("entropy {}", i),
               fmt::format("the attention of layer {} has become almost one-hot: its mean entropy is {:.3g} nats, down "
                           "from {:.3g} at first; qk_norm or a lower train.learning_rate usually helps",
                           i, entropy, first_entropy_[i]));
  }
  return warnings;
}

}  // namespace prism
