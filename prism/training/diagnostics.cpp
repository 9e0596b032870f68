#include "prism/training/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/kernels/euclidean_norm.h"
#include "prism/models/batch.h"

namespace prism {
namespace {

double norm_of(const torch::Tensor& values) {
  return euclidean_norm(values).item<double>();
}

/// A forward pass without gradients. Gives what the head reads.
torch::Tensor show_to(Probe& probe, Decoder decoder, BatchTensors& tensors) {
  const torch::NoGradGuard no_gradients;
  tensors.context.probe = &probe;
  return decoder(tensors.tokens_BT, tensors.context);
}

bool is_finite(const torch::Tensor& values) {
  return torch::isfinite(values).all().item<bool>();
}

}  // namespace

torch::Tensor gradient_of(Decoder decoder, const torch::Tensor& row) {
  for (const auto& parameter : decoder->parameters()) {
    if (!parameter.is_alias_of(row) || !parameter.grad().defined()) continue;
    const auto gradient = parameter.grad().contiguous();
    return gradient.as_strided(row.sizes(), row.strides(),
                               gradient.storage_offset() + row.storage_offset() - parameter.storage_offset());
  }
  return {};
}

StepDiagnostics::StepDiagnostics(Decoder decoder, Batch batch) : decoder_(std::move(decoder)) {
  const torch::NoGradGuard no_gradients;
  AttentionEntropyProbe entropy(decoder_->config().layers);
  ActivationProbe activations;
  Probes both({&entropy, &activations});
  batch.rows = std::clamp(kTokens / batch.context, int64_t{1}, std::min(kSequences, batch.rows));
  BatchTensors tensors(batch);
  show_to(both, decoder_, tensors);
  report_.entropy = entropy.result();
  report_.activations = activations.result();
  report_.parameters = measure_parameters(decoder_);
  for (const auto& row : llama_weights(decoder_)) before_.push_back(row.tensor.detach().clone());
}

StepReport StepDiagnostics::finish() {
  PRISM_ASSERT(!before_.empty(), "diagnostics", "a step that is finished twice");
  const torch::NoGradGuard no_gradients;
  const auto rows = llama_weights(decoder_);
  for (size_t i = 0; i < rows.size(); ++i) {
    auto& parameter = report_.parameters[i];
    if (parameter.weight > 0) parameter.update = norm_of(rows[i].tensor - before_[i]) / parameter.weight;
  }
  before_.clear();
  return std::move(report_);
}

std::vector<ParameterUpdate> measure_parameters(Decoder decoder) {
  const torch::NoGradGuard no_gradients;
  std::vector<ParameterUpdate> parameters;
  for (const auto& [name, row] : llama_weights(decoder)) {
    const auto gradient = gradient_of(decoder, row);
    parameters.push_back({name, gradient.defined() ? norm_of(gradient) : 0, norm_of(row), 0});
  }
  return parameters;
}

std::string place_of_divergence(Decoder decoder, std::vector<Batch> batches) {
  for (auto& batch : batches) {
    FiniteProbe probe(decoder->config().layers.size());
    BatchTensors tensors(batch);
    const auto hidden_BTD = show_to(probe, decoder, tensors);
    if (!probe.place().empty()) return probe.place();
    const torch::NoGradGuard no_gradients;
    if (!is_finite(decoder->loss(hidden_BTD, tensors.labels_BT))) return "the logits";
  }
  // The backward pass goes from the head to the embedding.
  const auto rows = llama_weights(decoder);
  for (auto row = rows.rbegin(); row != rows.rend(); ++row) {
    const auto gradient = gradient_of(decoder, row->tensor);
    if (gradient.defined() && !is_finite(gradient)) return "the gradient of " + row->name;
  }
  return "";
}

std::vector<DivergenceWarning> DivergenceWatch::look(double loss) {
  constexpr double kDecay = 0.9, kRise = 1.5, kRiseNats = 1, kDeviations = 6;
  if (trend_.mean < 0) trend_.mean = trend_.least = loss;
  std::vector<DivergenceWarning> warnings;
  const double rise = std::max({(kRise - 1) * trend_.least, kRiseNats, kDeviations * std::sqrt(trend_.variance)});
  if (loss > trend_.least + rise && said_.insert("loss").second)
    warnings.push_back({"loss", fmt::format("the loss is {:.3g}, {:.3g} at its lowest; a lower train.learning_rate, a "
                                            "longer warm-up or norm rms usually cures it",
                                            loss, trend_.least)});
  const double difference = loss - trend_.mean;
  trend_.mean += (1 - kDecay) * difference;
  trend_.variance = kDecay * trend_.variance + (1 - kDecay) * difference * difference;
  trend_.least = std::min(trend_.least, trend_.mean);
  return warnings;
}

std::vector<DivergenceWarning> DivergenceWatch::look(const StepReport& report) {
  constexpr double kLargeRms = 100, kGrowth = 2, kWholeWeight = 1, kOneHot = 0.02, kCollapse = 0.1;
  std::vector<DivergenceWarning> warnings;
  const auto say_once = [&](const std::string& sign, const std::string& sentence) {
    if (said_.insert(sign).second) warnings.push_back({sign, sentence});
  };
  for (size_t i = 0; i < std::min(last_rms_.size(), report.activations.size()); ++i) {
    const double rms = report.activations[i].residual_rms, before = last_rms_[i];
    if (rms > kLargeRms && rms > kGrowth * before)
      say_once("residual",
               fmt::format("the residual stream in front of {} grows: its root mean square is {:.3g}, {:.3g} before; a "
                           "lower train.learning_rate or norm rms usually cures it",
                           stream_reader(i, report.entropy.size()), rms, before));
  }
  last_rms_.clear();
  for (const auto& layer : report.activations) last_rms_.push_back(layer.residual_rms);
  for (const auto& parameter : report.parameters)
    if (parameter.update > kWholeWeight && !parameter.name.ends_with(".bias"))
      say_once("update", fmt::format("one step changed {} by {:.3g} times its norm; a lower train.learning_rate or a "
                                     "longer warm-up usually cures it",
                                     parameter.name, parameter.update));
  for (size_t i = 0; i < report.entropy.size(); ++i) {
    const double entropy = report.entropy[i].entropy;
    if (i >= first_entropy_.size()) first_entropy_.push_back(entropy);
    if (entropy < kOneHot && entropy < kCollapse * first_entropy_[i])
      say_once(
          fmt::format("entropy {}", i),
          fmt::format("the attention of layer {} has become almost one-hot: its mean entropy is {:.3g} nats, {:.3g} "
                      "at first; qk_norm or a lower train.learning_rate usually cures it",
                      i, entropy, first_entropy_[i]));
  }
  return warnings;
}

}  // namespace prism
