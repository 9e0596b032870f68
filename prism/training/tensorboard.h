// Writes a run's records as TensorBoard event files, beside records.jsonl.
//
//   TensorBoard board("runs/novels", state.step);
//   board.add(event);                           // any event; kinds that TensorBoard cannot show are skipped
//   board.add_parameters(state.step, decoder->weights());
#pragma once

#include <cstdint>
#include <filesystem>

#include "prism/formats/event_file.h"
#include "prism/layers/weight_list.h"
#include "prism/records/run_event.h"

namespace prism {

/// Scalars: train/loss, train/perplexity, train/learning_rate, train/grad_norm, train/tokens_per_s; valid/loss and
/// valid/perplexity, or valid/METRIC if the metric is not the loss. Scalars of diagnostics: entropy/layer_N,
/// entropy/layer_N/head_N (layers with several heads), residual_rms/layer_N, dead_units/layer_N and update/NAME. Texts:
/// sample/N (each prompt at each temperature, in the recipe's order) and warning. Histograms: weights/NAME and
/// gradients/NAME, by the names in the model's file.
class TensorBoard {
 public:
  /// @param first_step  replaces what earlier files in the folder hold for this step and later ones.
  TensorBoard(const std::filesystem::path& folder, int64_t first_step) : events_(folder, first_step) {}

  /// @throws FailedError when the disk is full.
  void add(const RunEvent& event);
  /// Writes a histogram of each weight and of its gradient, if defined.
  void add_parameters(int64_t step, const std::vector<WeightEntry>& weights);

 private:
  /// Writes a scalar; skips values that are not finite.
  void scalar(int64_t step, const std::string& tag, double value);
  void add_loss(int64_t step, const std::string& group, double loss);
  void add(int64_t step, const TrainRecord& record);
  void add(int64_t step, const EvalRecord& record);
  void add(int64_t step, const SampleRecord& record);
  void add(int64_t step, const WarningRecord& record);
  void add(int64_t step, const DivergedRecord& record);
  void add(int64_t step, const DiagnosticsRecord& record);

  EventFile events_;
  int64_t sample_step_ = -1, samples_ = 0;  ///< samples_: number within that step
};

}  // namespace prism
