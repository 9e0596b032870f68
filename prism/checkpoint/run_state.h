// The checkpoints of a run: model folders with the state from which training resumes bit for bit.
//
//   run/checkpoints/step-00000120      model, optimizer.safetensors, state.json; --resume continues from it
//   run/checkpoints/best-00000080      model only; the best validation so far by the run's metric
//   run/checkpoints/weights-00000064   model only; the steps listed in the recipe
//
// A checkpoint is written under a temporary name, flushed to disk and then renamed. A named checkpoint is complete.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"

namespace prism {

/// The state of a run except its tensors.
struct RunState {
  /// Format 2 had best_figure and last_figure instead of best_metric and last_metric, and no fingerprint of the
  /// tensors; format 1 had best_val_loss and last_val_loss, -1 for none.
  int64_t prism_format = 3;
  int64_t step = 0;
  int64_t trained = 0;              ///< tokens, or a classifier's examples
  bool evaluation_pending = false;  ///< stopped after the step, before its validation
  int64_t windows = 0;              ///< position of the loader
  int64_t records_bytes = 0;        ///< length of records.jsonl
  double seconds = 0, step_seconds = 0;
  double loss_sum = 0;  ///< sum over the steps since the last train record
  int64_t loss_count = 0;
  std::optional<double> auxiliary_sum;  ///< the same of the auxiliary losses; std::nullopt if layers added none
  std::vector<double> head_share_sum;   ///< the same of the shares of heads, by layer; empty without head budgets
  double mean_loss = -1, least_loss = -1, loss_variance = 0;  ///< a LossTrend (training/diagnostics.h)
  std::optional<double> best_metric, last_metric;             ///< std::nullopt before the first validation
  std::string recipe_fingerprint, tensors_fingerprint;        ///< may be empty in states of earlier formats
  std::string data_fingerprint;                               ///< of the data's tokenizer, size and tokens
  std::string dtype;    ///< the dtype of matmuls, with `auto` resolved when the run began
  std::string isa;      ///< instruction set of the kernels when the run began
  int64_t threads = 0;  ///< thread count when the run began; it may change the summation order of libraries
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("step", step, "optimizer steps done");
    v("tokens", trained, "tokens, or examples of a classifier, trained on");
    v("evaluation_pending", evaluation_pending,
      "whether the last step's validation, samples and checkpoint are still to come");
    v("windows", windows, "training windows, or examples of a classifier, used so far");
    v("records_bytes", records_bytes, "length of records.jsonl");
    v("seconds", seconds, "wall-clock seconds of the run so far");
    v("step_seconds", step_seconds, "seconds spent in training steps, without evaluation and checkpoints");
    v("loss_sum", loss_sum, "sum of the losses since the last train record");
    v("loss_count", loss_count, "number of losses in loss_sum");
    v("auxiliary_sum", auxiliary_sum, "sum of the auxiliary losses since the last train record, if layers added any");
    v("head_share_sum", head_share_sum, "sum of the steps' shares of heads, by layer; empty without head budgets");
    v("mean_loss", mean_loss, "running mean of the steps' losses, nats; -1: none yet");
    v("least_loss", least_loss, "lowest running mean so far; -1: none yet");
    v("loss_variance", loss_variance, "running variance of the steps' losses");
    v("best_metric", best_metric, "best validation metric so far, if any");
    v("last_metric", last_metric, "latest validation metric, if any");
    v("recipe_fingerprint", recipe_fingerprint, "fingerprint of the recipe");
    v("tensors_fingerprint", tensors_fingerprint, "fingerprint of the checkpoint's safetensors files");
    v("data_fingerprint", data_fingerprint, "fingerprint of the training and validation data");
    v("dtype", dtype, "dtype of matrix products");
    v("isa", isa, "instruction set of the kernels that the run began with");
    v("threads", threads, "threads that the run began with");
  }
};

enum class CheckpointKind { step, best, weights };

/// The checkpoints of one run folder.
class CheckpointStore {
 public:
  explicit CheckpointStore(const std::filesystem::path& run);

  /// Deletes temporary files left by a killed process. The caller must hold the run's lock.
  void sweep();
  /// Writes a new checkpoint through `write(folder)` and names it once all of it is on disk. Replaces a checkpoint of
  /// the same kind and step. @throws FailedError (disk full); the old checkpoint then stays.
  void save(CheckpointKind kind, int64_t step, const std::function<void(const std::filesystem::path&)>& write);
  /// Deletes all but the `keep` newest checkpoints of a kind.
  void prune(CheckpointKind kind, int64_t keep);
  /// Deletes the checkpoints of a kind after `step`.
  void discard_after(CheckpointKind kind, int64_t step);
  /// Steps of the complete checkpoints of a kind, ascending.
  std::vector<int64_t> steps(CheckpointKind kind) const;
  std::filesystem::path path(CheckpointKind kind, int64_t step) const;
  /// A file or folder that is neither a checkpoint nor a temporary of one, if any.
  std::optional<std::filesystem::path> foreign_entry() const;

 private:
  std::filesystem::path folder_;
};

/// The newest checkpoint that a run can resume from, if any.
std::optional<std::filesystem::path> last_checkpoint(const std::filesystem::path& run);

/// The run that this checkpoint folder belongs to, if any.
std::optional<std::filesystem::path> run_of_checkpoint(const std::filesystem::path& folder);

/// Writes the optimizer's tensors and the state, with the fingerprint of all tensors in the folder. The model must be
/// there already.
void save_run_state(const std::filesystem::path& folder, RunState state, const std::vector<NamedTensor>& optimizer);
/// @throws InputError for a missing or damaged file.
RunState load_run_state(const std::filesystem::path& folder);
/// @throws InputError if the folder's tensors are not those that were saved with the state.
void check_tensors(const std::filesystem::path& folder, const RunState& state);
void load_optimizer(const std::filesystem::path& folder, const std::vector<NamedTensor>& optimizer);

}  // namespace prism
