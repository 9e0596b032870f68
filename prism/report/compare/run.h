// One training run, read from its folder: the model, its curves, its samples, and how it ended.
//
//   const Run run = read_run("runs/prism_s1");
//   if (!run.valid.empty()) fmt::print("{:.4f}\n", run.valid.back().loss);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/json.h"
#include "prism/records/run_records.h"

namespace prism {

/// A point of a curve. In this folder, `trained` is a number of tokens or examples, whichever the run counts.
struct CurvePoint {
  int64_t trained = 0;
  double loss = 0;     ///< nats per token or example; in a validation curve, the run's metric
  double seconds = 0;  ///< since the run began
};

struct RunSample : SampleRecord {
  int64_t trained = 0;
};

/// Diagnostics of one step. Values that were not finite are NaN.
struct RunDiagnostics {
  int64_t trained = 0, step = 0;
  std::vector<double> entropy;                      ///< of attention, in nats, mean over heads, of each layer
  std::vector<double> residual_rms;                 ///< before each layer, then at the input of the LM head
  std::vector<double> dead_units;                   ///< share in each layer, mean over its hidden layers
  double update = 0;                                ///< median over the parameters
  double step_ms = NAN;                             ///< of this step, without the diagnostics
  std::vector<std::vector<double>> head_entropies;  ///< of each layer; only in the run's last diagnostics
  std::vector<ParameterUpdate> parameters;          ///< only in the run's last diagnostics
};

/// A warning that the run recorded.
struct RunWarning {
  int64_t trained = 0;
  std::string text;
};

/// Name of the file in a run's folder that contains a RunTiming.
constexpr const char* kRunTimingName = "timing.json";

/// The separately measured speed of a run's model. Its steps alternate with those of another run.
struct RunTiming {
  std::string baseline;  ///< the group of the other run
  double tokens_per_s = 0, ratio = 0;
  int64_t steps = 0, threads = 0;
  std::string cpu;
  std::optional<double> wait_share;
  template <class Visitor>
  void visit(Visitor& v) {
    v("baseline", baseline, "arm that it was measured in turn with");
    v("tokens_per_s", tokens_per_s, "training tokens per second: the ratio times the baseline's");
    v("ratio", ratio, "its tokens per second over the baseline's, from medians of steps in turn");
    v("steps", steps, "number of measured steps");
    v("threads", threads, "number of threads");
    v("cpu", cpu, "CPU of the measurement");
    v("wait_share", wait_share, "share of time that threads waited for a core during the measurement, 0..1");
  }
};

/// A field of the recipe: its path ("model.layers[2].heads") and its value as JSON; strings without quotes.
using RecipeField = std::pair<std::string, std::string>;

/// All fields of a recipe, in order.
std::vector<RecipeField> recipe_fields(const Json& recipe);

/// A run. What its files do not record is empty here and shown as missing.
struct Run {
  std::filesystem::path folder;  ///< as given
  std::string name;              ///< the folder's name if the records have none
  std::string schedule, dtype, cpu;
  TrainingUnit unit = TrainingUnit::tokens;  ///< what the training counts
  Metric metric;                             ///< the quantity that validation measured, i.e. the values of `valid`
  std::string tokenizer, validation;         ///< fingerprints of tokenizer and validation data; empty if not recorded
  std::optional<int64_t> seed, parameters, flops_per_token, total, threads, peak_memory_bytes;
  std::optional<double> peak_gflops;  ///< the CPU's limit, measured at start-up
  std::optional<double> peak_share;   ///< share of that limit, 0..1, median over the training records
  std::optional<double> wait_share;   ///< share of time that threads waited for a core, median over those records
  /// Tokens or examples per second, from the timing, else the end record, else the median over the training records.
  std::optional<double> rate;
  std::optional<RunTiming> timing;
  std::vector<LayerRecord> layers;
  std::vector<CurvePoint> train, valid;  ///< `trained` strictly increasing, losses finite
  /// The mean share of heads s over all layers, while training and in validation; `loss` holds the share.
  std::vector<CurvePoint> train_share, valid_share;
  std::vector<RunSample> samples;
  std::vector<LayerDistance> distances;     ///< one per layer, ascending; from the last such record
  std::vector<RunDiagnostics> diagnostics;  ///< `trained` strictly increasing
  std::vector<RunWarning> warnings;
  std::vector<ClassificationRecord> classifications;  ///< in order
  std::vector<TextLossRecord> text_losses;            ///< one per text, in order; from the text's last record
  std::vector<RecipeField> recipe;                    ///< flattened; empty if there is no recipe.json
  int64_t trained = 0;                                ///< of the last record
  double seconds = 0;                                 ///< of the last record
  bool finished = false;                              ///< true if the file ends with an end record
  /// Returns true if the speed was measured while threads waited for cores (CoreWait::kBusy, core/machine.h).
  bool was_busy() const;
  bool is_cut = false;  ///< the last record's line was cut short and is ignored
  /// For a run that stopped at a value that is not finite, where the first such value was found; else std::nullopt.
  std::optional<std::string> diverged;
};

/// Reads `folder`/records.jsonl and, if present, `folder`/recipe.json and `folder`/timing.json.
///
/// Ignores a last line that is cut short, unknown kinds and fields, and losses that are not finite. If records repeat a
/// stretch (a run resumed from an earlier checkpoint), the later ones replace the earlier ones. Records of final
/// measurements (kinds attention_distance, classification and text_loss) do not change the run's `trained` and seconds,
/// since they have their own.
///
/// @throws InputError if there is no such folder or file, no complete record in it, a line that is not a JSON object,
///         or a field of the wrong type.
Run read_run(const std::filesystem::path& folder);

}  // namespace prism
