// Training by a recipe: batches in, records and checkpoints out, resumable bit for bit.
//
//   Trainer trainer(recipe, "runs/novels", threads, Start::fresh);
//   TrainResult result = trainer.run();
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "prism/checkpoint/run_state.h"
#include "prism/core/files.h"
#include "prism/core/progress.h"
#include "prism/core/records.h"
#include "prism/data/loader.h"
#include "prism/generation/generate.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/training/diagnostics.h"
#include "prism/training/recipe.h"
#include "prism/training/tensorboard.h"

namespace prism {

enum class Start { fresh, resume };

struct TrainResult {
  bool finished = false;  ///< false: stopped by a signal, state saved
  int64_t step = 0, tokens = 0;
  double val_loss = -1;  ///< nats per token; -1: no validation split
};

class Trainer {
 public:
  /// @param recipe   shorthand expanded; vocab_size 0 takes the data's. To resume: the run's own recipe.json.
  /// @param run      the run's folder: absent or empty for `fresh`, one with a recipe.json for `resume`, which goes
  ///                 on from its last checkpoint, or starts again where it has none and notes() say so.
  /// @param threads  of the process, for the run's record and the CPU's limit.
  /// @param device   open_device()'s.
  /// @throws InputError for a recipe, data or folder that cannot be used; FailedError if another process trains there.
  Trainer(Recipe recipe, std::filesystem::path run, int threads, Start start,
          const torch::Device& device = torch::kCPU);

  /// Trains to the end, or to the first stop signal, and saves.
  /// @throws FailedError when the loss is not finite (nothing of that step is saved), or the disk is full.
  TrainResult run();

  const Recipe& recipe() const { return recipe_; }
  Decoder decoder() const { return decoder_; }
  /// What the user should know before it runs.
  const std::vector<std::string>& notes() const { return notes_; }

 private:
  /// Random weights, or those of the recipe's `init`.
  void initialise();
  /// Makes the folder of a fresh run, locks it, and clears away what a killed process left.
  void claim_folder(Start start);
  void open_data();
  std::vector<WeightedData> open_training_data();
  void write_run_record();
  /// Before a resumed run goes on: when, and on which machine.
  void write_resume_record();
  /// Before the first step: a prompt that does not fit must not be found out after the last.
  void check_samples();
  GenerateOptions sample_options(const std::string& prompt, double temperature) const;
  void restore();
  /// Saves what is done so far, for --resume.
  TrainResult stop();
  /// One step with what is due behind it. False: stopped by a signal, between two things that --resume can go on with.
  bool advance();
  bool train_step();
  /// The mean loss over the step's batches; nothing if a signal came between two of them.
  std::optional<double> forward_backward();
  void show_progress(int64_t tokens);
  /// For messages: what to do about a last checkpoint that cannot be used.
  std::string way_round_last() const;
  /// For messages: which checkpoint is known to be good, because a finite loss followed it.
  std::string way_back() const;
  /// What the last step made of the weights shows in no loss of a step. @throws FailedError if theirs is not finite.
  void check_last_step();
  [[noreturn]] void fail_not_finite(double loss, double norm, int64_t first_window);
  /// Records it first. @param step  whose loss is not finite. @param place  where the first value that is not finite
  /// was found; empty: nowhere, on looking again. @param sentence  what was expected and what was found.
  [[noreturn]] void fail_diverged(int64_t step, const std::string& place, const std::string& sentence);
  /// Validation, weights, samples, checkpoint. False: stopped by a signal before any of it was recorded.
  bool finish_step();
  /// What the recipe wants measured at the end; absent: a signal came.
  std::optional<std::vector<Json>> measure_finals();
  bool evaluate();
  void record_training();
  /// Whether the step that is being made is one to look into.
  bool diagnosis_due() const;
  /// Of the step that is being made, again.
  std::vector<Batch> batches_from(int64_t first_window, int64_t count);
  void record_diagnostics(const StepReport& report, double step_seconds, double looked_seconds);
  void warn(const std::vector<DivergenceWarning>& warnings);
  void record_samples();
  void record_end();
  void record_divergence(int64_t step, const std::string& place);
  void save_checkpoint();
  void save_weights(CheckpointKind kind);
  bool due(int64_t every_tokens) const;
  /// Of the step that ends at so many tokens.
  double learning_rate_at(int64_t tokens) const;
  int64_t total_steps() const;
  bool done() const { return state_.step == total_steps() && !state_.evaluation_pending; }
  double seconds() const { return state_.seconds + timer_.seconds(); }
  /// Of the CPU's limit, over the steps of this process; absent on a GPU.
  std::optional<double> peak_share(double tokens_per_s) const;
  Json record(const char* kind) const;
  /// Writes a record, for TensorBoard too.
  void keep(const Json& record);
  void open_board(int64_t first_step);
  /// Of the records and steps so far, so that no warning is given twice and none missed.
  void recall_warnings();
  /// What computes, as both kinds of record have it.
  Json machine() const;

  Recipe recipe_;
  std::filesystem::path run_;
  int threads_;
  std::optional<FolderLock> lock_;
  std::vector<std::unique_ptr<TokenDataset>> train_data_;  ///< the parts of a mixture, or one
  std::unique_ptr<TokenDataset> valid_data_;
  std::unique_ptr<WindowLoader> loader_, valid_windows_;
  std::optional<Tokenizer> tokenizer_;
  Decoder decoder_{nullptr};
  std::optional<Optimizer> optimizer_;
  CheckpointStore checkpoints_;
  std::unique_ptr<RecordWriter> records_;
  std::optional<TensorBoard> board_;
  std::unique_ptr<Progress> progress_;
  std::vector<int64_t> save_steps_;
  RunState state_;
  Timer timer_;
  double flops_per_token_ = 0;
  std::optional<double> peak_gflops_;  ///< absent on a GPU
  double logged_seconds_ = 0, last_loss_ = 0, last_norm_ = 0;
  int64_t logged_tokens_ = 0;
  int64_t begun_tokens_ = 0;  ///< where this process began, and begun_seconds_ of steps
  double begun_seconds_ = 0;
  DivergenceWatch watch_;
  bool prune_due_ = false;  ///< a checkpoint was saved that no finite loss has followed yet
  std::vector<std::string> notes_;
};

}  // namespace prism
