// The checkpoints of a run: model folders with the state that lets training go on bit for bit.
//
//   run/checkpoints/step-00000120      model, optimizer.safetensors, state.json: what --resume continues from
//   run/checkpoints/best-00000080      model only: the best validation so far, by the run's figure
//   run/checkpoints/weights-00000064   model only: the steps that the recipe asked for
//
// A checkpoint is written under a temporary name, flushed, and renamed: under its own name it is always whole.
#pragma once

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"

namespace prism {

/// Everything about a run that is not a tensor.
struct RunState {
  int64_t prism_format = 2;  ///< 1: best_val_loss and last_val_loss, with -1 for none
  int64_t step = 0, tokens = 0;
  bool evaluation_pending = false;  ///< stopped between the step and the validation that was due after it
  int64_t windows = 0;              ///< position of the loader
  int64_t records_bytes = 0;        ///< length of records.jsonl
  double seconds = 0, step_seconds = 0;
  double loss_sum = 0;  ///< of the steps since the last train record
  int64_t loss_count = 0;
  double mean_loss = -1, least_loss = -1, loss_variance = 0;  ///< what a rise of the loss is measured against
  std::optional<double> best_figure, last_figure;             ///< of validations; absent: none yet
  std::optional<std::string> recipe_fingerprint;              ///< absent: of an earlier version
  std::string data_fingerprint;  ///< of the tokenizer that made the shards, their size and tokens
  std::string dtype;             ///< what `auto` stood for when the run began
  std::string isa;               ///< instruction set of the kernels that the run began with
  int64_t threads = 0;           ///< library products may add up in another order with another number
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("step", step, "optimizer steps done");
    v("tokens", tokens, "tokens trained on");
    v("evaluation_pending", evaluation_pending,
      "whether the last step's validation, samples and checkpoint are still to come");
    v("windows", windows, "training windows used so far");
    v("records_bytes", records_bytes, "length of records.jsonl");
    v("seconds", seconds, "wall-clock seconds of the run so far");
    v("step_seconds", step_seconds, "seconds spent in training steps, without evaluation and checkpoints");
    v("loss_sum", loss_sum, "sum of the losses since the last train record");
    v("loss_count", loss_count, "number of losses in loss_sum");
    v("mean_loss", mean_loss, "running mean of the steps' losses, nats; -1: none yet");
    v("least_loss", least_loss, "lowest running mean so far; -1: none yet");
    v("loss_variance", loss_variance, "running variance of the steps' losses");
    v("best_figure", best_figure, "best validation figure so far, if any");
    v("last_figure", last_figure, "latest validation figure, if any");
    v("recipe_fingerprint", recipe_fingerprint, "fingerprint of the recipe");
    v("data_fingerprint", data_fingerprint, "fingerprint of the token shards");
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

  /// Deletes what a killed process left under temporary names. Only for who holds the run's lock.
  void sweep();
  /// Fills a new checkpoint through `write(folder)` and gives it its name when all is on the disk; one of the same kind
  /// and step is replaced. @throws FailedError (disk full): what was there stays.
  void save(CheckpointKind kind, int64_t step, const std::function<void(const std::filesystem::path&)>& write);
  /// Deletes the oldest of a kind beyond the `keep` newest.
  void prune(CheckpointKind kind, int64_t keep);
  /// Deletes those of a kind of later steps than `step`.
  void discard_after(CheckpointKind kind, int64_t step);
  /// Steps of the whole checkpoints of a kind, ascending.
  std::vector<int64_t> steps(CheckpointKind kind) const;
  std::filesystem::path path(CheckpointKind kind, int64_t step) const;
  /// Something in the folder that is no checkpoint, nor was to become or has been one; absent: nothing.
  std::optional<std::filesystem::path> foreign_entry() const;

 private:
  std::filesystem::path folder_;
};

/// The newest checkpoint of a run that training can go on from, if the folder has any.
std::optional<std::filesystem::path> last_checkpoint(const std::filesystem::path& run);

/// The run that has this folder among its checkpoints; absent: it lies elsewhere.
std::optional<std::filesystem::path> run_of_checkpoint(const std::filesystem::path& folder);

void save_run_state(const std::filesystem::path& folder, const RunState& state,
                    const std::vector<NamedTensor>& optimizer);
/// @throws InputError for a missing or damaged file.
RunState load_run_state(const std::filesystem::path& folder);
void load_optimizer(const std::filesystem::path& folder, const std::vector<NamedTensor>& optimizer);

}  // namespace prism
