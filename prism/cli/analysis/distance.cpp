// prism analyse attention-distance: how many tokens back each layer attends, for one arm or for two arms compared.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/analysis/compare_distances.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/field_options.h"
#include "prism/cli/reading.h"
#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/kernels/compute_type.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/tables/table.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDistanceName = "attention-distance";
constexpr const char* kDistanceHelp = R"(
In every head, a token attends to itself and to the tokens before it with weights that sum to 1. The attention distance
is the weighted mean of how many tokens back these stand. A layer's distance is the mean over its heads, the windows and
the tokens in the second half of each window, which all have a long past to attend to.

Small: the layer attends to near tokens; 0: only to the token itself. Large: it gathers from far away. Attention spread
evenly over the past gives 3/8 of the context (384 tokens of 1024); all attention on the first token gives 3/4.
Distances do not depend on the number or width of heads, so layers of different head schedules can be compared.

Several MODELs are seeds of one arm. The table shows the mean and sample standard deviation over them. --against names
the models of a second arm. The difference is MODEL minus that arm; it is below 0 if MODEL attends to nearer tokens. If
both arms have the same number of models, they are paired: runs by seed, models of unknown seed in the order given. The
deviation is then that of the differences; otherwise the deviations of the arms add in squares. Layers count from 0.

  prism analyse attention-distance runs/prism --data data
  prism analyse attention-distance runs/prism-1 runs/prism-2 --against runs/uniform-1 runs/uniform-2 --data data
  prism analyse attention-distance runs/prism --data data --sequences 256 --context 512 --json

--json prints one object per model (kind model: layers with the distance of every head), then one per layer (kind layer:
means and deviations over seeds, and the difference).
)";

struct DistanceOptions {
  std::string data, split = "valid";
  int64_t sequences = 64, context = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("data", data, "folder of token shards made by prism tokenize");
    v("split", split, "which shards to read: valid or train");
    v("sequences", sequences, "number of windows to read, from the first; all if there are fewer");
    v("context", context, "tokens per window; 0: the models' context");
  }
};

struct DistanceWords {
  std::vector<std::string> models, against;
  DistanceOptions options;
  std::optional<bool> document_mask;  ///< std::nullopt: as the runs were trained
  ComputeOptions compute;
  bool json = false;
};

/// What is known about a model before its weights are read.
struct Candidate {
  std::string name;
  ModelConfig config;
  std::string tokenizer;             ///< its fingerprint
  int64_t end_of_text = -1;          ///< token id; -1: none
  std::optional<int64_t> seed = {};  ///< of the run, if known
  bool document_mask = false;        ///< true if the run was trained with it
};

/// The models of an experiment; `against` may be empty.
struct Arms {
  std::vector<Candidate> models, against;
};

std::vector<Candidate> read_candidates(const std::vector<std::string>& names) {
  std::vector<Candidate> candidates;
  for (const auto& name : names) {
    const fs::path folder = find_model_folder(name);
    const Tokenizer tokenizer = Tokenizer::load(folder);
    const auto recipe = find_run_recipe(folder);
    candidates.push_back({name, load_config(folder), tokenizer.fingerprint_text(), tokenizer.end_of_text().value_or(-1),
                          recipe ? std::optional(recipe->seed) : std::nullopt, recipe && recipe->data.document_mask});
  }
  return candidates;
}

/// Checks that the layers of `model` can be compared with those of `first`.
void check_alike(const Candidate& model, const Candidate& first) {
  PRISM_CHECK(
      model.config.layers.size() == first.config.layers.size(), "analyse",
      "expected models with the same number of layers; found {} in {} and {} in {}; compare models of equal depth.",
      first.config.layers.size(), first.name, model.config.layers.size(), model.name);
  PRISM_CHECK(model.tokenizer == first.tokenizer, "analyse",
              "expected models with the same tokenizer, because distances count its tokens; found {} in {} and {} in "
              "{}; compare "
              "models trained on the same shards.",
              first.tokenizer, first.name, model.tokenizer, model.name);
}

void check_seeds(const std::vector<Candidate>& arm) {
  for (const auto& model : arm) {
    const auto schedule = heads_of(model.config), expected = heads_of(arm.front().config);
    PRISM_CHECK(
        schedule == expected, "analyse",
        "expected all models of an arm to have the same head schedule; found {} in {} and {} in {}; name one of them "
        "with --against.",
        format_head_schedule(expected), arm.front().name, format_head_schedule(schedule), model.name);
  }
}

/// Sorts the models of `against` so that their seeds are in the same order as those of `models`, if all seeds are
/// known.
void pair_seeds(Arms& arms) {
  const auto is_known = [](const Candidate& model) { return model.seed.has_value(); };
  const auto& models = arms.models;
  if (models.size() != arms.against.size() || models.size() < 2 ||
      !std::all_of(models.begin(), models.end(), is_known) ||
      !std::all_of(arms.against.begin(), arms.against.end(), is_known))
    return;
  std::vector<Candidate> paired;
  for (const auto& model : models) {
    const auto other = std::find_if(arms.against.begin(), arms.against.end(),
                                    [&](const Candidate& candidate) { return candidate.seed == model.seed; });
    PRISM_CHECK(other != arms.against.end(), "analyse",
                "expected the same seeds on both sides, because differences are paired by seed; found {} of {} on one "
                "side only; name runs of the same seeds, or different numbers of runs, which are not paired.",
                *model.seed, model.name);
    paired.push_back(std::move(*other));
    arms.against.erase(other);
  }
  arms.against = std::move(paired);
}

Arms read_arms(const DistanceWords& words) {
  Arms arms{read_candidates(words.models), read_candidates(words.against)};
  for (const auto* arm : {&arms.models, &arms.against}) {
    for (const auto& model : *arm) check_alike(model, arms.models.front());
    check_seeds(*arm);
  }
  pair_seeds(arms);
  return arms;
}

/// Tokens per window: `wanted`, or if that is 0 the context that all models share.
int64_t find_context(const Arms& arms, int64_t wanted) {
  const int64_t context = wanted == 0 ? arms.models.front().config.context : wanted;
  for (const auto* arm : {&arms.models, &arms.against}) {
    for (const auto& model : *arm) {
      PRISM_CHECK(
          wanted != 0 || model.config.context == context, "analyse",
          "expected models with the same context; found {} in {} and {} in {}; choose one for all with --context.",
          context, arms.models.front().name, model.config.context, model.name);
      PRISM_CHECK(context >= 1 && context <= model.config.context, "analyse",
                  "--context: expected 1 to {} tokens, the context of {}; found {}; choose fewer.",
                  model.config.context, model.name, context);
    }
  }
  return context;
}

/// Measures models one after another and shows one progress line for all.
class DistanceMeter {
 public:
  DistanceMeter(const DistanceWords& words, const WindowLoader& windows, size_t models)
      : words_(words),
        windows_(windows),
        sequences_(std::min(words.options.sequences, windows.windows_per_epoch())),
        progress_(kDistanceName, sequences_ * static_cast<int64_t>(models), "sequences") {}

  /// @throws FailedError when stopped by a signal.
  std::vector<AttentionDistance> measure(const std::vector<Candidate>& arm) {
    std::vector<AttentionDistance> results;
    for (const auto& candidate : arm) {
      const auto model = load_model(candidate.name, words_.compute);
      const auto result = measure_attention_distance(model.decoder, windows_, sequences_, [&](int64_t sequences) {
        progress_.update(done_ + sequences, candidate.name);
      });
      if (!result) throw FailedError("analyse", "stopped by a signal; no distance was computed.");
      done_ += sequences_;
      results.push_back(*result);
    }
    return results;
  }

 private:
  const DistanceWords& words_;
  const WindowLoader& windows_;
  int64_t sequences_, done_ = 0;
  Progress progress_;
};

/// A distance in tokens, with two decimals.
std::string tokens_text(double value) {
  return fmt::format("{:.2f}", value);
}

/// Adds an arm's two cells to a row: its geometry, and its distance with the deviation over seeds if it has several.
void add_arm(std::vector<TableCell>& row, const ArmLayer& layer) {
  row.push_back({fmt::format("{} x {}", layer.heads, layer.head_dim)});
  row.push_back({tokens_text(layer.distance), layer.seeds > 1 ? tokens_text(layer.seed_sd) : ""});
}

Table arm_table(const std::vector<ArmLayer>& layers) {
  Table table{
      "Attention distance", {{"layer"}, {"heads x width"}, {"distance", true}, {"sd over heads", true}}, {}, {}};
  for (const auto& layer : layers) {
    auto& row = table.rows.emplace_back(1, TableCell{std::to_string(layer.layer)});
    add_arm(row, layer);
    row.push_back({layer.heads > 1 ? tokens_text(layer.head_sd) : kNoValue});
  }
  return table;
}

Table comparison_table(const std::vector<LayerComparison>& layers) {
  Table table{"Attention distance",
              {{"layer"},
               {"heads x width"},
               {"distance", true},
               {"against"},
               {"distance", true},
               {"difference", true},
               {"heads differ"}},
              {},
              {}};
  for (const auto& layer : layers) {
    auto& row = table.rows.emplace_back(1, TableCell{std::to_string(layer.layer)});
    add_arm(row, layer.arm);
    add_arm(row, layer.against);
    const bool scatters = std::min(layer.arm.seeds, layer.against.seeds) > 1;
    row.push_back({fmt::format("{:+.2f}", layer.difference), scatters ? tokens_text(layer.difference_sd) : ""});
    row.push_back({layer.same_heads ? "" : "yes"});
  }
  return table;
}

/// Says how the difference of the arms was computed.
std::string pairing_note(const Arms& arms) {
  if (arms.models.size() != arms.against.size())
    return fmt::format(
        "The difference is between means of {} and {} models, not paired; deviations of both add in "
        "squares.",
        arms.models.size(), arms.against.size());
  std::vector<std::string> pairs;
  for (size_t i = 0; i < arms.models.size(); ++i) pairs.push_back(arms.models[i].name + " - " + arms.against[i].name);
  return fmt::format("The difference is paired: {}.", join_names(pairs));
}

void print_table(Table table, const Arms& arms, const AttentionDistance& measured, bool document_mask) {
  table.notes.push_back(fmt::format(
      "Mean tokens back over {} queries: the second half of each of {} windows of {} tokens{}.", measured.queries,
      measured.sequences, measured.context, document_mask ? ", attention within documents" : ""));
  if (!arms.against.empty()) table.notes.push_back(pairing_note(arms));
  if (std::max(arms.models.size(), arms.against.size()) > 1)
    table.notes.emplace_back("± is the sample standard deviation over models.");
  fmt::print("{}", table_text(table));
}

Json line_of(const char* kind, const Json& fields) {
  Json json = {{"analysis", kDistanceName}, {"kind", kind}};
  json.update(fields);
  return json;
}

void print_models(const std::vector<Candidate>& models, const std::vector<AttentionDistance>& results, const char* arm,
                  bool document_mask) {
  for (size_t i = 0; i < models.size(); ++i) {
    Json json = line_of("model", {{"model", models[i].name}, {"arm", arm}, {"document_mask", document_mask}});
    json.update(fields_to_json(results[i]));
    fmt::print("{}\n", to_text(json));
  }
}

template <class Layer>
void print_layers(const std::vector<Layer>& layers) {
  for (const auto& layer : layers) fmt::print("{}\n", to_text(line_of("layer", fields_to_json(layer))));
}

/// Returns true if all models were trained with a document mask, false if none was.
bool find_document_mask(const Arms& arms) {
  const auto& first = arms.models.front();
  for (const auto* arm : {&arms.models, &arms.against})
    for (const auto& model : *arm)
      PRISM_CHECK(model.document_mask == first.document_mask, "analyse",
                  "expected models trained with the same data.document_mask; found {} with and {} without it; give "
                  "--document-mask or --no-document-mask.",
                  first.document_mask ? first.name : model.name, first.document_mask ? model.name : first.name);
  return first.document_mask;
}

void add_options(CLI::App& app, DistanceWords& words) {
  app.add_option("MODEL", words.models,
                 "model folders, or run folders (their last checkpoints); several are seeds of one arm")
      ->required();
  app.add_option("--against", words.against, "models of a second arm to compare with")->type_name("MODEL");
  add_fields(app, words.options);
  app.get_option("--data")->required()->type_name("FOLDER");
  add_document_mask_option(app, words.document_mask);
  app.add_flag("--json", words.json, "print one JSON object per line instead of the table");
  add_compute_options(app, words.compute);
}

}  // namespace

int run_analyse_distance(const Arguments& arguments) {
  CLI::App app(std::string("Measure how many tokens back each layer attends.\n") + kDistanceHelp,
               "prism analyse attention-distance");
  DistanceWords words;
  add_options(app, words);
  if (!parse(app, arguments)) return 0;
  PRISM_CHECK(words.options.sequences >= 1, "analyse", "--sequences: expected at least 1; found {}; raise it.",
              words.options.sequences);
  start_compute(words.compute.threads, words.compute.device);
  catch_stop_signals();

  const Arms arms = read_arms(words);
  const int64_t context = find_context(arms, words.options.context);
  const TokenDataset data(words.options.data, words.options.split);
  check_tokenizer(data, arms.models.front().name, arms.models.front().tokenizer);
  const bool document_mask = words.document_mask ? *words.document_mask : find_document_mask(arms);
  const WindowOptions windows{.context = context,
                              .rows = std::max<int64_t>(1, kReadingBatchTokens / context),
                              .document_mask = document_mask,
                              .shuffle = false};
  const WindowLoader loader(data, windows, data.info() ? data.info()->end_of_text : arms.models.front().end_of_text);
  std::optional<DistanceMeter> meter(std::in_place, words, loader, arms.models.size() + arms.against.size());
  const auto models = meter->measure(arms.models), against = meter->measure(arms.against);
  meter.reset();  // clears the progress line

  if (words.json) {
    print_models(arms.models, models, "model", document_mask);
    print_models(arms.against, against, "against", document_mask);
  }
  if (against.empty()) {
    const auto layers = average_distances(models);
    words.json ? print_layers(layers) : print_table(arm_table(layers), arms, models.front(), document_mask);
  } else {
    const auto layers = compare_distances(models, against);
    words.json ? print_layers(layers) : print_table(comparison_table(layers), arms, models.front(), document_mask);
  }
  return 0;
}

}  // namespace prism
