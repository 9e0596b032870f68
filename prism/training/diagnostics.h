// Diagnostics of a training step, and warnings before a run diverges.
//
//   StepDiagnostics diagnostics(objective, model, batch);    // after backward(), before the update
//   optimizer.step(learning_rate, norm);
//   const StepReport report = diagnostics.finish();
//   for (const auto& warning : watch.look(report)) progress.note(warning.text);
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "prism/analysis/activations.h"
#include "prism/analysis/attention/attention_entropy.h"
#include "prism/records/run_records.h"
#include "prism/training/objective/objective.h"

namespace prism {

/// Measures a step before its update, when the gradients are known, and again after it. The reported update is the
/// actual change of the weights, with momentum, clipping and decay, not learning rate times gradient. Costs a forward
/// pass over at most kTokens tokens of at most kSequences windows, and a second copy of the weights until finish().
class StepDiagnostics {
 public:
  static constexpr int64_t kTokens = 4096, kSequences = 16;

  /// @param batch  number of the batch whose first rows are measured; one of the step's batches.
  StepDiagnostics(Objective& objective, const ModelConfig& model, int64_t batch);

  /// @throws InternalError if called twice.
  StepReport finish();

 private:
  Objective& objective_;
  StepReport report_;
  std::vector<torch::Tensor> before_;  ///< weights before the update, in the order of file_tensors()
};

/// The norms of every parameter's current gradient and values; the update is left 0. In the order of the model's file.
std::vector<ParameterUpdate> measure_parameters(const std::vector<WeightEntry>& weights);

/// The place of the first value that is not finite. Searches a forward pass over `count` batches, then the gradients
/// from the head down to the embedding. Empty if all values are finite.
std::string place_of_divergence(Objective& objective, const ModelConfig& model, int64_t first, int64_t count);

/// The running statistics that a rise of the loss is compared with.
struct LossTrend {
  double mean = -1;   ///< running mean, nats per token; -1 before the first step
  double least = -1;  ///< lowest running mean so far
  double variance = 0;
};

/// Warns of the signs that a run shows before its loss stops being finite. Warns once for each sign.
class DivergenceWatch {
 public:
  DivergenceWatch() = default;
  /// @param weights  the model's weights; biases are exempt from the update check.
  explicit DivergenceWatch(const std::vector<WeightEntry>& weights);
  /// Checks the loss [nats per token] of every step. Warns if it exceeds the lowest running mean by more than half of
  /// that mean, by more than 1 nat and by more than 6 standard deviations. Mean and deviation decay by 0.9 per step.
  std::vector<WarningRecord> look(double loss);
  /// Checks the report of a step with diagnostics. The signs are:
  ///  - a residual stream whose root mean square exceeds 100 and has doubled since the last report,
  ///  - a weight (not a bias) that one step changes by more than its own norm,
  ///  - a layer whose mean entropy falls below 0.02 nats and below a tenth of its first value.
  std::vector<WarningRecord> look(const StepReport& report);
  const LossTrend& trend() const { return trend_; }
  /// Restores the trend of the steps before the run was resumed.
  void recall(const LossTrend& trend) { trend_ = trend; }
  /// Marks a sign as already reported before the run was resumed.
  void recall(const std::string& sign) { said_.insert(sign); }

 private:
  LossTrend trend_;
  std::vector<double> first_entropy_, last_rms_;
  std::set<std::string> said_, biases_;  ///< reported signs; names of the biases in the model's file
};

}  // namespace prism
