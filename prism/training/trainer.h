// Trains an objective by a recipe and writes records and checkpoints. Training resumes bit for bit.
//
//   Trainer trainer(recipe, "runs/novels", make_objective(recipe), {.threads = threads});
//   for (const auto& note : trainer.prepare(Start::fresh)) tell("note: {}\n", note);
//   TrainResult result = trainer.run();
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/progress.h"
#include "prism/core/timer.h"
#include "prism/training/diagnostics.h"
#include "prism/training/objective/objective.h"
#include "prism/training/optimizer/optimizer.h"
#include "prism/training/recorder.h"
#include "prism/training/run_folder.h"
#include "prism/training/speed.h"

namespace prism {

struct TrainResult {
  bool finished = false;  ///< false: stopped by a signal, with the state saved
  int64_t step = 0;
  int64_t trained = 0;          ///< tokens or examples
  Metric metric;                ///< what validation measures
  std::optional<double> value;  ///< the metric's last value; std::nullopt without validation
};

/// Threads and device of the training.
struct TrainMachine {
  int threads = 1;                     ///< threads of the process, for the run's record and the CPU's peak
  torch::Device device = torch::kCPU;  ///< from open_device()
};

/// The mean loss of a step and the norm of its gradients before clipping.
struct StepFigures {
  double loss = 0, norm = 0;
};

class Trainer {
 public:
  /// Reads no data and writes no file. @param recipe  with its shorthand expanded. To resume, the run's recipe.json.
  Trainer(Recipe recipe, std::filesystem::path run, std::unique_ptr<Objective> objective, TrainMachine machine = {});

  /// Opens the data, makes the model and claims the run's folder.
  ///  - `fresh` needs a missing or empty folder.
  ///  - `restart` also accepts a folder with an unfinished run, which it deletes.
  ///  - `resume` needs a folder with a recipe.json. It continues from the last checkpoint, or from step 0 without one.
  ///
  /// @return  notes for the user.
  /// @throws InputError for a recipe, data or folder that cannot be used; FailedError if another process trains there.
  ///         A refused recipe leaves no files behind.
  std::vector<std::string> prepare(Start start);

  /// Trains to the end or to the first stop signal, and saves. Call prepare() first.
  /// @throws FailedError when the loss is not finite (nothing of that step is saved), or the disk is full.
  TrainResult run();

  /// The recipe; complete after prepare().
  const Recipe& recipe() const { return recipe_; }

 private:
  /// Writes the first files of a fresh run.
  void begin();
  /// Continues from the last checkpoint. @return  notes for the user.
  std::vector<std::string> restore();
  /// Restores the divergence watch from the records, so that no warning is repeated or missed.
  void recall_warnings(const std::vector<RunEvent>& events);
  /// Saves a checkpoint for --resume.
  TrainResult stop();
  /// Makes one step and everything due after it. Returns false if stopped by a signal; --resume can continue there.
  bool advance();
  bool train_step();
  /// The mean loss over the step's batches; std::nullopt if a signal arrived between two of them.
  std::optional<double> forward_backward();
  /// @param trained  tokens or examples.
  void show_progress(int64_t trained);
  /// Checks the loss after the last update, which no training step computes. @throws FailedError if it is not finite.
  void check_last_step();
  [[noreturn]] void fail_not_finite(double loss, double norm);
  /// Records the divergence, then throws FailedError. @param step  the step whose loss is not finite.
  /// @param place  where the first value that is not finite was found; empty if a second pass found none.
  /// @param sentence  what was expected and what was found.
  [[noreturn]] void fail_diverged(int64_t step, const std::string& place, const std::string& sentence);
  /// Validates, saves weights, samples and checkpoints. Returns false if a signal arrived before any of it was
  /// recorded.
  bool finish_step();
  bool evaluate();
  void save_checkpoint();
  /// Writes a record of the current step.
  void record(RunRecord record);
  void record_run();
  void record_training();
  void record_end();
  void warn(const std::vector<WarningRecord>& warnings);
  /// Version, threads and hardware, for the records of a start.
  MachineRecord machine_record() const;

  Recipe recipe_;
  std::unique_ptr<Objective> objective_;
  TrainMachine machine_;
  RunFolder folder_;
  std::optional<Optimizer> optimizer_;
  Recorder recorder_;
  std::unique_ptr<Progress> progress_;
  std::vector<int64_t> save_steps_;
  RunState state_;
  Timer timer_;
  TrainingSpeed speed_;
  DivergenceWatch watch_;
  StepFigures last_;
  bool prune_due_ = false;  ///< a checkpoint was saved and no finite loss has followed it yet
};

}  // namespace prism
