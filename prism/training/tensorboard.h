// A run's records as TensorBoard shows them, beside records.jsonl.
//
//   TensorBoard board("runs/novels", state.step);
//   board.add(record);                          // of any kind; what TensorBoard has no place for is passed over
//   board.add_parameters(state.step, decoder->weights());
#pragma once

#include <cstdint>
#include <filesystem>

#include "prism/core/fields.h"
#include "prism/formats/event_file.h"
#include "prism/layers/weight_list.h"

namespace prism {

/// Scalars: train/loss, train/perplexity, train/learning_rate, train/grad_norm, train/tokens_per_s, valid/loss,
/// valid/perplexity; of diagnostics entropy/layer_N and, of several heads, entropy/layer_N/head_N,
/// residual_rms/layer_N, dead_units/layer_N and update/NAME. Texts: sample/N, each prompt at each temperature in the
/// order of the recipe, and warning. Histograms: weights/NAME and gradients/NAME, by the names in the model's file.
class TensorBoard {
 public:
  /// @param first_step  what earlier files of the folder say of it and later ones is replaced.
  TensorBoard(const std::filesystem::path& folder, int64_t first_step) : events_(folder, first_step) {}

  /// @throws FailedError when the disk is full.
  void add(const Json& record);
  /// Histograms of weights and of the gradients that are there, parameter by parameter.
  void add_parameters(int64_t step, const std::vector<WeightEntry>& weights);

 private:
  void add_diagnostics(int64_t step, const Json& record);
  void add_layers(int64_t step, const Json& layers, const char* name, const char* tag);

  EventFile events_;
  int64_t sample_step_ = -1, samples_ = 0;  ///< of that step so far
};

}  // namespace prism
