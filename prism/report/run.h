// One training run as its folder tells it: what was trained, its curves, its samples, how it ended.
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

struct CurvePoint {
  int64_t tokens = 0;
  double loss = 0;     ///< nats per token; of a validation the run's figure
  double seconds = 0;  ///< since the run began
};

struct RunSample : SampleRecord {
  int64_t tokens = 0;  ///< trained so far
};

/// What a step looked like from inside. Values that were not finite are NaN.
struct RunDiagnostics {
  int64_t tokens = 0, step = 0;
  std::vector<double> entropy;                      ///< of attention, in nats, mean over heads, of each layer
  std::vector<double> residual_rms;                 ///< in front of each layer, then of what the head reads
  std::vector<double> dead_units;                   ///< share of them in each layer, mean over its hidden layers
  double update = 0;                                ///< median over the parameters
  double step_ms = NAN;                             ///< of this step, without the look
  std::vector<std::vector<double>> head_entropies;  ///< of each layer; of the run's last diagnostics alone
  std::vector<ParameterUpdate> parameters;          ///< of the run's last diagnostics alone
};

/// What a run said that goes wrong.
struct RunWarning {
  int64_t tokens = 0;
  std::string text;
};

/// The file in a run's folder that holds a RunTiming.
constexpr const char* kRunTimingName = "timing.json";

/// How fast steps of the run's model are, measured on their own: each in turn with one of another run's.
struct RunTiming {
  std::string baseline;  ///< the other run's group
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

/// A field of the recipe: its path ("model.layers[2].heads") and its value as JSON, text without quotes.
using RecipeField = std::pair<std::string, std::string>;

/// All fields of a recipe, in their order.
std::vector<RecipeField> recipe_fields(const Json& recipe);

/// What a file leaves out is empty here, and shown as such.
struct Run {
  std::filesystem::path folder;  ///< as given
  std::string name;              ///< the folder's, where the records name none
  std::string schedule, dtype, cpu;
  Figure figure;                      ///< what validation measured: the values of `valid`
  std::string tokenizer, validation;  ///< fingerprints: what the validation loss is of; empty: not recorded
  std::optional<int64_t> seed, parameters, flops_per_token, total_tokens, threads, peak_memory_bytes;
  std::optional<double> peak_gflops;  ///< the CPU's limit, measured at start-up
  std::optional<double> peak_share;   ///< of that limit, 0..1, median over the training records
  std::optional<double> wait_share;   ///< of time that threads waited for a core, median over those records
  std::optional<double>
      tokens_per_s;  ///< the timing's, else the end record's, else the median over the training records
  std::optional<RunTiming> timing;
  std::vector<LayerRecord> layers;
  std::vector<CurvePoint> train, valid;  ///< tokens strictly increasing, losses finite
  std::vector<RunSample> samples;
  std::vector<LayerDistance> distances;     ///< one a layer, ascending; of the last such record
  std::vector<RunDiagnostics> diagnostics;  ///< tokens strictly increasing
  std::vector<RunWarning> warnings;
  std::vector<TextLossRecord> text_losses;  ///< one a text, in order; of the text's last record
  std::vector<RecipeField> recipe;          ///< flattened; empty if there is no recipe.json
  int64_t tokens = 0;                       ///< of the last record
  double seconds = 0;                       ///< of the last record
  bool finished = false;                    ///< an end record closes the file
  /// Whether its speed was measured while threads waited for cores (CoreWait::kBusy, core/machine.h).
  bool was_busy() const;
  bool is_cut = false;  ///< the last record's line was cut short and is left out
  /// Where the first value that was not finite was found, of a run that ended by it; absent: it did not.
  std::optional<std::string> diverged;
};

/// Reads `folder`/records.jsonl and, if there, `folder`/recipe.json and `folder`/timing.json.
///
/// A last line cut short is left out. Records that repeat a stretch (a run resumed from an earlier checkpoint) replace
/// what stood there. Records of what was measured on the trained model (kinds attention_distance and text_loss) do not
/// move the run on: their tokens and seconds are their own. Kinds and fields that are not known are passed over; losses
/// that are not finite are left out.
///
/// @throws InputError if there is no such folder or file, no whole record in it, a line that is no JSON object, or a
///         field of the wrong type.
Run read_run(const std::filesystem::path& folder);

}  // namespace prism
