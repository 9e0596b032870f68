// What a step of training looks like from inside, and whether it is about to go wrong.
//
//   StepDiagnostics diagnostics(objective, model, batch);    // gradients are there, weights not yet updated
//   optimizer.step(learning_rate, norm);
//   const StepReport report = diagnostics.finish();
//   for (const auto& warning : watch.look(report)) progress.note(warning.text);
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "prism/analysis/activations.h"
#include "prism/analysis/attention_entropy.h"
#include "prism/records/run_records.h"
#include "prism/training/objective.h"

namespace prism {

/// Looks at a step between its backward pass and its update, and after the update. The update is the true one, with
/// momentum, clipping and decay, not learning rate times gradient. Costs a forward pass over at most kTokens tokens of
/// at most kSequences windows, and memory for another copy of the weights until finish().
class StepDiagnostics {
 public:
  static constexpr int64_t kTokens = 4096, kSequences = 16;

  /// @param batch  of the step, whose first rows are looked at.
  StepDiagnostics(Objective& objective, const ModelConfig& model, int64_t batch);

  /// @throws InternalError if called twice.
  StepReport finish();

 private:
  Objective& objective_;
  StepReport report_;
  std::vector<torch::Tensor> before_;  ///< weights, as the rows of the model's file
};

/// Every parameter's gradient, as it is there now, and values; no update. In the order of the model's file.
std::vector<ParameterUpdate> measure_parameters(const std::vector<WeightEntry>& weights);

/// Where the first value that is not finite turns up: in a forward pass over `count` batches, or else in which
/// gradient, from the head down; empty: nowhere.
std::string place_of_divergence(Objective& objective, const ModelConfig& model, int64_t first, int64_t count);

/// What a rise of the loss is measured against.
struct LossTrend {
  double mean = -1;   ///< nats per token, running; -1: of no step yet
  double least = -1;  ///< that the mean was
  double variance = 0;
};

/// Remembers what was reported and says, once for each sign, what a run that goes wrong shows before its loss is
/// infinite.
class DivergenceWatch {
 public:
  DivergenceWatch() = default;
  /// @param weights  of the model, which say what is a bias.
  explicit DivergenceWatch(const std::vector<WeightEntry>& weights);
  /// Of every step. A sign is a loss [nats per token] above the least of its running mean by half of that, by a nat and
  /// by six of its standard deviations; mean and deviation forget a tenth a step.
  std::vector<WarningRecord> look(double loss);
  /// Of the steps that were looked into. Signs are:
  ///  - a residual stream whose root mean square passes 100 and has doubled since the last report,
  ///  - a weight, no bias, that one step changes by more than its own norm,
  ///  - a layer whose mean entropy falls below 0.02 nats and a tenth of what it first was.
  std::vector<WarningRecord> look(const StepReport& report);
  const LossTrend& trend() const { return trend_; }
  /// Of the steps before the run was resumed.
  void recall(const LossTrend& trend) { trend_ = trend; }
  /// It was warned of that already, before the run was resumed.
  void recall(const std::string& sign) { said_.insert(sign); }

 private:
  LossTrend trend_;
  std::vector<double> first_entropy_, last_rms_;
  std::set<std::string> said_, biases_;  ///< signs; names in the model's file
};

}  // namespace prism
