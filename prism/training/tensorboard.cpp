#include "prism/training/tensorboard.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <cmath>
#include <string>

#include "prism/checkpoint/weight_map.h"
#include "prism/core/statistics.h"

namespace prism {
namespace {

constexpr int64_t kParts = 30;              ///< bins of a histogram
constexpr int64_t kMostValues = 64 * 1024;  ///< values sampled for a histogram

/// A histogram of the finite values; of a large tensor, evenly spaced ones. Without bins if none is finite.
ValueHistogram histogram_of(const torch::Tensor& values) {
  const auto all = values.detach().reshape({-1});
  // An odd spacing samples every column of a matrix whose width is a power of two.
  const int64_t spacing = (all.numel() + kMostValues - 1) / kMostValues | 1;
  const auto flat = all.slice(0, 0, std::nullopt, spacing).to(torch::kFloat);
  const auto finite = flat.index({torch::isfinite(flat)});
  ValueHistogram result;
  if (finite.numel() == 0) return result;
  result.low = finite.min().item<double>();
  result.high = finite.max().item<double>();
  // Equal values need bins of nonzero width too.
  if (result.low == result.high) result.high = result.low + std::max(1e-12, 1e-6 * std::abs(result.low));
  const auto counts = at::histc(finite, kParts, result.low, result.high).to(torch::kLong).cpu();
  const auto* first = counts.const_data_ptr<int64_t>();
  result.counts.assign(first, first + kParts);
  result.sum = finite.sum(torch::kDouble).item<double>();
  result.squares = finite.square().sum(torch::kDouble).item<double>();
  return result;
}

}  // namespace

void TensorBoard::add(const RunEvent& event) {
  std::visit(
      [&](const auto& record) {
        if constexpr (requires { add(int64_t{0}, record); }) add(event.head.step.value_or(0), record);
      },
      event.record);
  events_.flush();
}

void TensorBoard::scalar(int64_t step, const std::string& tag, double value) {
  if (std::isfinite(value)) events_.scalar(step, tag, value);
}

void TensorBoard::add_loss(int64_t step, const std::string& group, double loss) {
  scalar(step, group + "/loss", loss);
  if (std::isfinite(loss)) events_.scalar(step, group + "/perplexity", std::exp(loss));
}

void TensorBoard::add(int64_t step, const TrainRecord& record) {
  add_loss(step, "train", record.loss);
  scalar(step, "train/learning_rate", record.learning_rate);
  scalar(step, "train/grad_norm", record.grad_norm);
  scalar(step, record.rate.examples_per_s ? "train/examples_per_s" : "train/tokens_per_s", record.rate.value());
}

void TensorBoard::add(int64_t step, const EvalRecord& record) {
  if (record.metric == Metric().name) return add_loss(step, "valid", record.value);
  scalar(step, "valid/" + record.metric, record.value);
  if (record.val_loss) scalar(step, "valid/loss", *record.val_loss);
}

void TensorBoard::add(int64_t step, const SampleRecord& record) {
  samples_ = step == sample_step_ ? samples_ + 1 : 0;
  sample_step_ = step;
  events_.text(step, fmt::format("sample/{}", samples_),
               fmt::format("{}{}\n\n(temperature {})", record.prompt, record.text, record.temperature.value_or(0)));
}

void TensorBoard::add(int64_t step, const WarningRecord& record) {
  events_.text(step, "warning", record.text);
}

void TensorBoard::add(int64_t step, const DivergedRecord& record) {
  events_.text(step, "warning",
               record.place.empty() ? "diverged" : "diverged, the first value that is not finite in " + record.place);
}

void TensorBoard::add(int64_t step, const DiagnosticsRecord& record) {
  const auto& [entropy, activations, parameters] = record.report;
  for (size_t l = 0; l < entropy.size(); ++l) scalar(step, fmt::format("entropy/layer_{}", l), entropy[l].entropy);
  for (size_t l = 0; l < entropy.size(); ++l) {
    const auto& heads = entropy[l].head_entropies;
    for (size_t h = 0; h < heads.size() && heads.size() > 1; ++h)
      scalar(step, fmt::format("entropy/layer_{}/head_{}", l, h), heads[h]);
  }
  for (size_t l = 0; l < activations.size(); ++l)
    scalar(step, fmt::format("residual_rms/layer_{}", l), activations[l].residual_rms);
  for (size_t l = 0; l < activations.size(); ++l)
    if (const auto& shares = activations[l].dead_units; !shares.empty())
      scalar(step, fmt::format("dead_units/layer_{}", l), statistic(shares).mean);
  for (const auto& parameter : parameters) scalar(step, "update/" + parameter.name, parameter.update);
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
