// A run's records as TensorBoard shows them, beside records.jsonl.
//
//   TensorBoard board("runs/novels", state.step);
//   board.add(event);                           // of any kind; what TensorBoard has no place for is passed over
//   board.add_parameters(state.step, decoder->weights());
#pragma once

#include <cstdint>
#include <filesystem>

#include "prism/formats/event_file.h"
#include "prism/layers/weight_list.h"
#include "prism/records/run_event.h"

namespace prism {

/// Scalars: train/loss, train/perplexity, train/learning_rate, train/grad_norm, train/tokens_per_s, valid/loss,
/// valid/perplexity (of another figure than the loss, valid/FIGURE); of diagnostics entropy/layer_N and, of several
/// heads, entropy/layer_N/head_N, residual_rms/layer_N, dead_units/layer_N and update/NAME. Texts: sample/N, each
/// prompt at each temperature in the order of the recipe, and warning. Histograms: weights/NAME and gradients/NAME, by
/// the names in the model's file.
class TensorBoard {
 public:
  /// @param first_step  what earlier files of the folder say of it and later ones is replaced.
  TensorBoard(const std::filesystem::path& folder, int64_t first_step) : events_(folder, first_step) {}

  /// @throws FailedError when the disk is full.
  void add(const RunEvent& event);
  /// Histograms of weights and of the gradients that are there, parameter by parameter.
  void add_parameters(int64_t step, const std::vector<WeightEntry>& weights);

 private:
  /// A value that is not finite is left out.
  void scalar(int64_t step, const std::string& tag, double value);
  void add_loss(int64_t step, const std::string& group, double loss);
  void add(int64_t step, const TrainRecord& record);
  void add(int64_t step, const EvalRecord& record);
  void add(int64_t step, const SampleRecord& record);
  void add(int64_t step, const WarningRecord& record);
  void add(int64_t step, const DivergedRecord& record);
  void add(int64_t step, const DiagnosticsRecord& record);

  EventFile events_;
  int64_t sample_step_ = -1, samples_ = 0;  ///< of that step so far
};

}  // namespace prism
