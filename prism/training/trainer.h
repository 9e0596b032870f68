// Training by a recipe: an objective's batches in, records and checkpoints out, resumable bit for bit.
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
#include "prism/training/objective.h"
#include "prism/training/optimizer.h"
#include "prism/training/recorder.h"
#include "prism/training/run_folder.h"
#include "prism/training/speed.h"

namespace prism {

struct TrainResult {
  bool finished = false;  ///< false: stopped by a signal, state saved
  int64_t step = 0, tokens = 0;
  Figure figure;                ///< the objective's
  std::optional<double> value;  ///< of it, measured last; absent: there was nothing to validate on
};

/// What computes.
struct TrainMachine {
  int threads = 1;                     ///< of the process, for the run's record and the CPU's limit
  torch::Device device = torch::kCPU;  ///< open_device()'s
};

/// Of a step: its mean loss and the norm of its gradients, before clipping.
struct StepFigures {
  double loss = 0, norm = 0;
};

class Trainer {
 public:
  /// Reads no data and writes no file. @param recipe  shorthand expanded. To resume: the run's own recipe.json.
  Trainer(Recipe recipe, std::filesystem::path run, std::unique_ptr<Objective> objective, TrainMachine machine = {});

  /// Reads the data, makes the model and claims the run's folder: one that is absent or empty for `fresh`; for
  /// `restart` also one with a run that did not end, which is deleted; for `resume` one with a recipe.json, which
  /// continues from its last checkpoint, or starts again where it has none.
  ///
  /// @return  what the user should know before it runs.
  /// @throws InputError for a recipe, data or folder that cannot be used; FailedError if another process trains there.
  ///         A recipe that is refused leaves nothing behind.
  std::vector<std::string> prepare(Start start);

  /// Trains to the end, or to the first stop signal, and saves. Only after prepare().
  /// @throws FailedError when the loss is not finite (nothing of that step is saved), or the disk is full.
  TrainResult run();

  /// Complete after prepare().
  const Recipe& recipe() const { return recipe_; }

 private:
  /// Writes what a fresh run begins with.
  void begin();
  /// Goes on from the last checkpoint. @return  notes.
  std::vector<std::string> restore();
  /// Of the records and steps so far, so that no warning is given twice and none missed.
  void recall_warnings(const std::vector<RunEvent>& events);
  /// Saves what is done so far, for --resume.
  TrainResult stop();
  /// One step with what is due after it. False: stopped by a signal, between two things that --resume can go on with.
  bool advance();
  bool train_step();
  /// The mean loss over the step's batches; nothing if a signal came between two of them.
  std::optional<double> forward_backward();
  void show_progress(int64_t tokens);
  /// What the last step made of the weights shows in no loss of a step. @throws FailedError if theirs is not finite.
  void check_last_step();
  [[noreturn]] void fail_not_finite(double loss, double norm);
  /// Records it first. @param step  whose loss is not finite. @param place  where the first value that is not finite
  /// was found; empty: nowhere, on looking again. @param sentence  what was expected and what was found.
  [[noreturn]] void fail_diverged(int64_t step, const std::string& place, const std::string& sentence);
  /// Validation, weights, samples, checkpoint. False: stopped by a signal before any of it was recorded.
  bool finish_step();
  bool evaluate();
  void save_checkpoint();
  /// Writes a record of the current step.
  void record(RunRecord record);
  void record_run();
  void record_training();
  void record_end();
  void warn(const std::vector<WarningRecord>& warnings);
  /// What computes, for the records of a start.
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
  bool prune_due_ = false;  ///< a checkpoint was saved that no finite loss has followed yet
};

}  // namespace prism
