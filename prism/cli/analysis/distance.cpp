// prism analyse attention-distance: how many tokens back each layer attends, for one arm or for two arms compared.

#include <algorithm>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "prism/analysis/arms.h"
#include "prism/analysis/attention/compare_distances.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/cli/analysis/analyse.h"
#include "prism/cli/analysis/output.h"
#include "prism/cli/analysis/reading.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/cli/options/field_options.h"
#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/core/text/printable.h"
#include "prism/kernels/compute_type.h"
#include "prism/training/recipe.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDistanceHelp = R"(
In every head, a token attends to itself and to the tokens before it with weights that sum to 1. Its attention distance
is the mean distance, in tokens, to the tokens it attends to, weighted by these weights. A layer's distance is the mean
over its heads, the windows and the tokens in the second half of each window, which all have a long past to attend to.

Small: the layer attends to near tokens; 0: only to the token itself. Large: it gathers from far away. Attention spread
evenly over the past gives 3/8 of the context (384 tokens of 1024); all attention on the first token gives 3/4.
Distances are in tokens whatever the number and width of the heads, so layers of different head schedules can be
compared.

Several MODELs count as runs of one configuration (an arm) with different seeds. The table shows the mean and sample
standard deviation over them. --against names the models of a second arm. The difference is MODEL minus that arm; it is
below 0 if MODEL attends to nearer tokens. If both arms have the same number of models, they are paired: runs by seed,
models of unknown seed in the order given. The table then shows the standard deviation of the differences; otherwise
sqrt(s1^2 + s2^2), where s1 and s2 are the standard deviations of the two arms. Layers count from 0.

  prism analyse attention-distance runs/prism --data data
  prism analyse attention-distance runs/prism-1 runs/prism-2 --against runs/uniform-1 runs/uniform-2 --data data
  prism analyse attention-distance runs/prism --data data --sequences 256 --tokens 512 --json

--json prints one object per model (kind model: layers with the distance of every head), then one per layer (kind layer:
means and deviations over seeds, and the difference). prism report --analysis shows them as a table, a plot over layers
and pictures of the heads.
)";

struct DistanceOptions {
  std::string data, split = "valid";
  int64_t sequences = 64, tokens = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("data", data, "folder of token shards made by prism tokenize");
    v("split", split, "which shards to read: valid or train");
    v("sequences", sequences, "number of windows to read, from the first; all if there are fewer");
    v("tokens", tokens, "tokens per window; 0: the models' context");
  }
};

struct DistanceWords {
  std::vector<std::string> models, against;
  DistanceOptions options;
  std::optional<bool> document_mask;  ///< std::nullopt: as the runs were trained
  ComputeOptions compute;
  bool json = false;
};

std::vector<ArmModel> read_models(const std::vector<std::string>& names) {
  std::vector<ArmModel> models;
  for (const auto& name : names) {
    const fs::path folder = find_model_folder(name);
    const auto config = load_config(folder);
    PRISM_CHECK(config.classes == 0, "analyse",
                "expected a language model in {}; found a classifier; name another model, or see its attention with "
                "prism analyse heads.",
                plain_line(name));
    const Tokenizer tokenizer = open_tokenizer(folder);
    const auto recipe = find_run_recipe(folder);
    models.push_back({name, config, tokenizer.fingerprint_text(), tokenizer.special_ids().opening.value_or(-1),
                      recipe ? std::optional(recipe->seed) : std::nullopt, recipe && recipe->data.document_mask});
  }
  return models;
}

/// Where words start, if one of the models needs it. All models have the same tokenizer.
std::vector<uint8_t> shared_word_starts(const Arms& arms) {
  for (const auto* model : arms.all())
    if (has_word_positions(model->config)) return open_tokenizer(find_model_folder(model->name)).word_starts();
  return {};
}

std::vector<std::string> names_in(const std::vector<ArmModel>& arm) {
  std::vector<std::string> names;
  for (const auto& model : arm) names.push_back(model.name);
  return names;
}

/// Adds a line for each model of an arm. @param name  of the arm.
void add_models(AnalysisLines& lines, const char* name, const std::vector<ArmModel>& arm,
                const std::vector<AttentionDistance>& distances, bool document_mask) {
  for (size_t i = 0; i < arm.size(); ++i) {
    Json line = {{"kind", "model"}, {"model", arm[i].name}, {"arm", name}, {"document_mask", document_mask}};
    line.update(fields_to_json(distances[i]));
    lines.add(line);
  }
}

/// Adds a line for each layer.
template <class Layer>
void add_layers(AnalysisLines& lines, const Arms& arms, int64_t queries, const std::vector<Layer>& layers) {
  for (const auto& layer : layers) {
    Json line = {{"kind", "layer"},
                 {"models", names_in(arms.models)},
                 {"against_models", names_in(arms.against)},
                 {"queries", queries}};
    line.update(fields_to_json(layer));
    lines.add(line);
  }
}

void add_options(CLI::App& app, DistanceWords& words) {
  app.add_option("MODEL", words.models,
                 "model folders, or run folders (their last checkpoints); several are seeds of one arm")
      ->required();
  app.add_option("--against", words.against, "models of a second arm to compare with")->type_name("MODEL");
  add_fields(app, words.options);
  app.get_option("--data")->required()->type_name("FOLDER");
  add_document_mask_option(app, words.document_mask);
  app.add_flag("--json", words.json,
               "print one JSON object per line instead of the table; prism report --analysis shows them");
  add_weights_option(app, words.compute);
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

  const Arms arms = pair_arms(read_models(words.models), read_models(words.against));
  const int64_t context = shared_context(arms, words.options.tokens);
  const auto shards = open_shards(words.options.data, words.options.split);
  const TokenDataset& data = *shards;
  check_tokenizer(data, arms.models.front().name, arms.models.front().tokenizer);
  const bool document_mask = words.document_mask ? *words.document_mask : shared_document_mask(arms);
  const WindowOptions windows{.context = context,
                              .rows = std::max<int64_t>(1, kReadingBatchTokens / context),
                              .document_mask = document_mask,
                              .word_starts = shared_word_starts(arms),
                              .shuffle = false};
  const WindowLoader loader(data, windows, data.info() ? data.info()->end_of_text : arms.models.front().end_of_text);
  const auto load = [&](const std::string& name) { return load_model(name, words.compute).decoder; };
  const auto [models, against] = measure_distances(arms, load, loader, words.options.sequences);

  const auto& first = models.front();
  AnalysisLines lines(
      {{"analysis", "attention-distance"},
       {"reading", describe_reading(describe_shards(words.options.data, words.options.split, document_mask),
                                    first.sequences, context)}});
  add_models(lines, "model", arms.models, models, document_mask);
  add_models(lines, "against", arms.against, against, document_mask);
  against.empty() ? add_layers(lines, arms, first.queries, average_distances(models))
                  : add_layers(lines, arms, first.queries, compare_distances(models, against));
  lines.print({.figures = "", .json = words.json});
  return 0;
}

}  // namespace prism
