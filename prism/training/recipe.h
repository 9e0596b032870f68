// A recipe: everything that determines a training run. Read from JSON, overridden by flags, saved with the run.
//
//   Recipe recipe = load_recipe("configs/head_schedules/small_prism.json", {{"train.tokens", "4M"},
//   {"model.layers[0-3].heads", "3"}});
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/attention/budget/budget_config.h"
#include "prism/core/fields.h"
#include "prism/models/model_config.h"
#include "prism/records/training_unit.h"
#include "prism/training/objective/final.h"
#include "prism/training/optimizer/learning_rate.h"
#include "prism/training/optimizer/optimizer.h"

namespace prism {

/// One part of a data mixture.
struct DataSource {
  std::string folder;
  double weight = 1;
  template <class Visitor>
  void visit(Visitor& v) {
    v("folder", folder, "token shards, made with the same tokenizer as data.folder");
    v("weight", weight, "this part's share of the training windows is weight / sum of weights, whatever its size");
  }
};

struct DataOptions {
  std::string folder;
  std::vector<DataSource> mixture;
  int64_t stride = 0;
  bool document_mask = false;
  double fraction = 1;
  int64_t examples = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("folder", folder,
      "token shards, or for classifiers labelled texts, made by prism tokenize; with a mixture, only tokenizer and "
      "validation are taken from here");
    v("mixture", mixture, "training data in weighted parts; empty: train on folder");
    v("stride", stride,
      "tokens from the start of one training window to the start of the next; 0: the context, without overlap");
    v("document_mask", document_mask,
      "attention stops and positions restart at document boundaries; off in arXiv 2606.27449");
    v("fraction", fraction,
      "classifiers: share of the training examples to use, the same ones for every seed; a larger share contains a "
      "smaller one");
    v("examples", examples,
      "classifiers: number of training examples, after fraction; leave it at 0: training fills it in");
  }
};

struct TrainOptions {
  int64_t tokens = 0;
  double epochs = 0;
  int64_t batch_rows = 8, accumulate = 1;
  std::string lr_schedule = "cosine";
  double learning_rate = 6e-4, final_share = 0.1, warmup_share = 0.025, decay_share = 0.2;
  int64_t warmup_tokens = 0;
  double z_loss = 0, skip_weight = 0.1;
  bool prompts = false;
  BudgetSchedule budget;
  std::vector<std::string> fixed;
  bool recompute = false;
  OptimizerOptions optimizer_options;  ///< its fields appear among these
  std::string dtype = "auto";
  int64_t diagnose_steps = 100;
  bool tensorboard = true;
  int64_t log_steps = 10, eval_every_tokens = 0, eval_tokens = 0, checkpoint_every_tokens = 0, keep_last = 2;
  double eval_every_epochs = 0, checkpoint_every_epochs = 0;
  Json save_steps = "none";
  std::vector<std::string> sample_prompts;
  int64_t sample_every_tokens = 0, sample_tokens = 100;
  Json sample_temperature = 0.8;
  template <class Visitor>
  void visit(Visitor& v) {
    v("tokens", tokens, "tokens to train on, rounded up to whole steps; for classifiers, give epochs instead");
    v("epochs", epochs,
      "classifiers: passes over the training examples, rounded down to whole steps; 0.5: half a pass");
    v("batch_rows", batch_rows, "sequences per forward pass");
    v("accumulate", accumulate, "forward passes per optimizer step");
    v("lr_schedule", lr_schedule,
      "learning rate after the warm-up: cosine, linear, or wsd (constant, then a linear decay)");
    v("learning_rate", learning_rate, "peak learning rate, reached at the end of the warm-up");
    v("final_share", final_share, "final learning rate, as a share of the peak");
    v("decay_share", decay_share, "wsd: length of the decay, as a share of the training");
    v("warmup_share", warmup_share, "length of the linear warm-up, as a share of the training");
    v("warmup_tokens", warmup_tokens, "length of the linear warm-up in tokens; 0: use warmup_share");
    v("z_loss", z_loss,
      "weight of the z-loss (mean squared log-sum-exp of the logits); it is added to the training loss, and the "
      "recorded training loss includes it; validation and final losses do not; 0 disables it");
    v("skip_weight", skip_weight,
      "with model.skip: weight of the second head's loss, which is added to the training loss and recorded as "
      "auxiliary_loss");
    v("prompts", prompts,
      "language models: split each window at a random place into a prompt and a rest, and predict only the rest; "
      "validation predicts the second half of each window. Models with head budgets, which read the prompt, are always "
      "trained this way; set this to train a model without them the same way, for comparison");
    v("budget", budget, "how head budgets are trained");
    v("fixed", fixed,
      "parameters that are not trained: a list of patterns of their names in model.safetensors, e.g. "
      "[\"model.embed_tokens.weight\", \"*.mlp.up_proj.weight\"]");
    v("recompute", recompute,
      "recompute activations in the backward pass: less memory, longer steps, the same gradients");
    optimizer_options.visit(v);
    v("dtype", dtype, "dtype of matrix products: auto, bfloat16 or float32; weights and sums are float32");
    v("log_steps", log_steps, "steps between train records");
    v("diagnose_steps", diagnose_steps,
      "steps between diagnostics (entropy of heads, residual stream, dead units, gradients, updates); before the first "
      "of these, diagnostics are also taken after 1, 4, 16, ... steps; 0: none");
    v("tensorboard", tensorboard, "also write event files for TensorBoard");
    v("eval_every_tokens", eval_every_tokens, "tokens between validations; 0: only at the end");
    v("eval_every_epochs", eval_every_epochs, "classifiers: epochs between validations; 0: only at the end");
    v("eval_tokens", eval_tokens, "validation tokens to use, from the start of the split; 0: all");
    v("checkpoint_every_tokens", checkpoint_every_tokens,
      "tokens between checkpoints; 0: only at the end and on SIGINT or SIGTERM");
    v("checkpoint_every_epochs", checkpoint_every_epochs,
      "classifiers: epochs between checkpoints; 0: only at the end and on SIGINT or SIGTERM");
    v("keep_last", keep_last, "number of latest checkpoints kept for resuming");
    v("save_steps", save_steps, "steps whose weights are kept for good: none, log (1, 2, 4, 8, ...) or a list");
    v("sample_prompts", sample_prompts, "prompts that the model continues at the end, for the report");
    v("sample_every_tokens", sample_every_tokens, "tokens between continuations of the prompts; 0: only at the end");
    v("sample_tokens", sample_tokens, "tokens per continuation; fewer if the context ends first");
    v("sample_temperature", sample_temperature,
      "sampling temperature of the continuations, or a list of temperatures; 0: greedy");
  }
};

struct Recipe {
  int64_t prism_format = 1;
  std::string name, from;
  int64_t seed = 1;
  std::string init, init_embedding;
  ModelConfig model;
  DataOptions data;
  TrainOptions train;
  FinalOptions final;
  template <class Visitor>
  void visit(Visitor& v) {
    v("prism_format", prism_format, "version of this file's format");
    v("name", name, "name of the run in reports; empty: the recipe's file name");
    v("from", from, "free text: where the values of this recipe come from, e.g. paper, table and row");
    v("seed", seed, "seed of initial weights and data order");
    v("init", init,
      "model folder, run or .gguf file whose weights this run starts from. A recipe without \"model\" takes this "
      "model's config; with \"model\", head counts may differ, but all weights must have the same shapes; empty: "
      "random weights");
    v("init_embedding", init_embedding,
      "model folder, run or .gguf file whose embedding this run starts from; it must have the same tokenizer and the "
      "same d_model; the other weights are random; empty: a random embedding");
    v("model", model, "the model");
    v("data", data, "training and validation data");
    v("train", train, "training options");
    v("final", final, "final measurements");
  }
};

/// One override: a field's path and its value as typed.
using Override = std::pair<std::string, std::string>;

/// Reads a recipe, applies the overrides and expands the shorthand. Overrides of model.layers[...] apply after the
/// expansion, all others before it. A recipe with `init` and without "model" takes that model's config. The model is
/// not completed: its vocab_size may still be 0.
/// @throws InputError for unknown fields and values of the wrong type.
Recipe load_recipe(const std::filesystem::path& file, const std::vector<Override>& overrides);
/// The same from JSON. @param source  its name in messages.
Recipe recipe_from_json(const Json& json, const std::string& source, const std::vector<Override>& overrides);

/// File in a run's folder with the complete recipe of the run.
constexpr const char* kRunRecipeName = "recipe.json";

/// Returns true if a run is finished: its records end with an end record and, if it has checkpoints, the last one is of
/// the last step (it is written after the records). Runs whose checkpoints were not kept have records alone.
bool is_finished(const std::filesystem::path& run);
/// Returns true if the run ended because its loss was no longer finite. Such a run resumes from its last checkpoint.
bool has_diverged(const std::filesystem::path& run);

/// The recipe of the run in folder `run`. @throws InputError if there is none.
Recipe load_run_recipe(const std::filesystem::path& run);
/// The recipe of the run that this checkpoint belongs to, if any.
std::optional<Recipe> find_run_recipe(const std::filesystem::path& model_folder);

/// What identifies a run: all fields of its recipe except `name` and `from`.
Json identity(Recipe recipe);
/// A hexadecimal hash of a recipe's JSON as stored in a run's folder, so fields of later versions do not change it.
/// Excludes names, file locations (which may move) and the final measurements.
std::string recipe_fingerprint(Json recipe);

/// The first field in which `given` differs from the recipe of a run, such as "train/tokens"; empty if none differs. A
/// vocabulary size or a number of examples of 0 in `given` matches the run's.
/// @throws InputError for an invalid model.
std::string differing_field(const Recipe& run, Recipe given);

/// The unit in which a recipe's training is counted: examples for classifiers, else tokens.
TrainingUnit unit_of(const Recipe& recipe);
/// Sequences of one optimizer step: batch_rows x accumulate.
int64_t step_sequences(const Recipe& recipe);
/// Tokens or examples of one optimizer step.
int64_t step_size(const Recipe& recipe);
/// Batches of an epoch of a classifier, all with batch_rows examples: floor(examples / batch_rows).
int64_t epoch_batches(const Recipe& recipe);
/// Optimizer steps of the whole training. @pre a classifier's number of examples is known.
int64_t total_steps(const Recipe& recipe);
/// Tokens or examples of the whole training, in whole steps.
int64_t training_size(const Recipe& recipe);
/// An interval in the recipe's unit, from the two fields that may give it. @return  0 for none.
int64_t interval_of(const Recipe& recipe, int64_t tokens, double epochs);

/// The learning-rate schedule of a run.
LearningRate learning_rate_of(const Recipe& recipe);

/// @throws InputError for values out of range, unknown names, and fields that do not apply to the recipe's kind of
///         model.
void check_options(const Recipe& recipe);
/// check_options(), and checks that a step is not longer than the whole training, as far as its length is known. A
/// single window may be longer.
void check_training(const Recipe& recipe);

/// The sampling temperatures. @throws InputError unless `value` is a number or a list of numbers of at least 0.
std::vector<double> sample_temperatures(const Json& value);

/// The steps of `save_steps` up to `total`. @throws InputError unless `value` is none, log or a list of steps.
std::vector<int64_t> save_steps(const Json& value, int64_t total);

/// Returns true if windows are divided into prompts and what follows them (train.prompts).
bool divides_windows(const Recipe& recipe);

}  // namespace prism
