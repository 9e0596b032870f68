#include "prism/training/recipe.h"

#include <algorithm>
#include <cmath>

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/run_state.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/records/run_event.h"

namespace prism {
namespace {

bool is_layer_path(const std::string& path) {
  return path.starts_with("model.layers[");
}

}  // namespace

Recipe load_recipe(const std::filesystem::path& file, const std::vector<Override>& overrides) {
  auto recipe = recipe_from_json(read_json(file.string()), file.string(), overrides);
  if (recipe.name.empty()) recipe.name = file.stem().string();
  return recipe;
}

Recipe recipe_from_json(const Json& json, const std::string& source, const std::vector<Override>& overrides) {
  PRISM_CHECK(json.is_object(), "recipe", "expected an object in {}; found {}; name a recipe.", source,
              json.type_name());
  auto recipe = fields_from_json<Recipe>(json, "");
  for (const auto& [path, value] : overrides)
    if (path == "init") set_field(recipe, path, value);
  if (!json.contains("model") && !recipe.init.empty()) recipe.model = load_config(recipe.init);
  for (const auto& [path, value] : overrides)
    if (!is_layer_path(path)) set_field(recipe, path, value);
  PRISM_CHECK(recipe.prism_format == 1, "recipe", "{}: expected prism_format 1; found {}; leave it out.", source,
              recipe.prism_format);
  expand_shorthand(recipe.model);
  for (const auto& [path, value] : overrides)
    if (is_layer_path(path)) set_field(recipe, path, value);
  return recipe;
}

Recipe load_run_recipe(const std::filesystem::path& run) {
  const auto file = run / kRunRecipeName;
  PRISM_CHECK(is_there(file), "recipe",
              "expected a run to resume at {}; found {}; name the folder of a run, or start one with --recipe FILE.",
              run.string(), std::filesystem::exists(run) ? fmt::format("no {}", kRunRecipeName) : "nothing");
  return load_recipe(file, {});
}

std::optional<Recipe> find_run_recipe(const std::filesystem::path& model_folder) {
  const auto run = run_of_checkpoint(model_folder);
  if (!run || !is_there(*run / kRunRecipeName)) return std::nullopt;
  return load_run_recipe(*run);
}

bool is_finished(const std::filesystem::path& run) {
  const auto last = last_run_event(run);
  if (!last || !std::holds_alternative<EndRecord>(last->record)) return false;
  const CheckpointStore checkpoints(run);
  const auto steps = checkpoints.steps(CheckpointKind::step);
  const bool kept = !steps.empty() || !checkpoints.steps(CheckpointKind::best).empty();
  return !kept || (!steps.empty() && steps.back() == last->head.step);
}

bool has_diverged(const std::filesystem::path& run) {
  const auto last = last_run_event(run);
  return last && std::holds_alternative<DivergedRecord>(last->record);
}

Json identity(Recipe recipe) {
  recipe.name = recipe.from = "";
  return fields_to_json(recipe);
}

std::string recipe_fingerprint(Json recipe) {
  for (const char* name : {"name", "from", "init", "init_embedding", "final"}) recipe.erase(name);
  if (auto data = recipe.find("data"); data != recipe.end() && data->is_object()) {
    data->erase("folder");
    if (auto mixture = data->find("mixture"); mixture != data->end())
      for (auto& part : *mixture) part.erase("folder");
  }
  uint64_t hash = 0;
  for (const char byte : to_text(recipe)) hash = mix64(hash + static_cast<unsigned char>(byte));
  return fmt::format("{:016x}", hash);
}

std::string differing_field(const Recipe& run, Recipe given) {
  // 0 leaves these to the data.
  if (given.model.vocab_size == 0) given.model.vocab_size = run.model.vocab_size;
  if (given.data.examples == 0) given.data.examples = run.data.examples;
  complete(given.model);
  const auto changes = Json::diff(fields_to_json(run), fields_to_json(given));
  return changes.empty() ? "" : changes[0]["path"].get<std::string>().substr(1);
}

TrainingUnit unit_of(const Recipe& recipe) {
  return recipe.model.classes > 0 ? TrainingUnit::examples : TrainingUnit::tokens;
}

int64_t step_sequences(const Recipe& recipe) {
  return recipe.train.batch_rows * recipe.train.accumulate;
}

int64_t step_size(const Recipe& recipe) {
  return step_sequences(recipe) * (unit_of(recipe) == TrainingUnit::tokens ? recipe.model.context : 1);
}

int64_t epoch_batches(const Recipe& recipe) {
  return recipe.data.examples / recipe.train.batch_rows;
}

int64_t total_steps(const Recipe& recipe) {
  if (unit_of(recipe) == TrainingUnit::tokens) return (recipe.train.tokens + step_size(recipe) - 1) / step_size(recipe);
  // A share such as 0.1 of 10 batches must not become 0.999...
  const double batches = recipe.train.epochs * static_cast<double>(epoch_batches(recipe)) * (1 + 1e-12);
  return static_cast<int64_t>(batches) / recipe.train.accumulate;
}

int64_t training_size(const Recipe& recipe) {
  return total_steps(recipe) * step_size(recipe);
}

int64_t interval_of(const Recipe& recipe, int64_t tokens, double epochs) {
  if (unit_of(recipe) == TrainingUnit::tokens) return tokens;
  const double batches = epochs * static_cast<double>(epoch_batches(recipe));
  const double examples = std::round(batches * static_cast<double>(recipe.train.batch_rows));
  return epochs == 0 ? 0 : std::max(int64_t{1}, static_cast<int64_t>(examples));
}

LearningRate learning_rate_of(const Recipe& recipe) {
  const TrainOptions& options = recipe.train;
  const auto total = static_cast<double>(training_size(recipe));
  return {.schedule = options.lr_schedule,
          .peak = options.learning_rate,
          .final_share = options.final_share,
          .warmup_tokens =
              options.warmup_tokens > 0 ? static_cast<double>(options.warmup_tokens) : options.warmup_share * total,
          .decay_tokens = options.decay_share * total,
          .total_tokens = total};
}

std::vector<double> sample_temperatures(const Json& value) {
  std::vector<double> temperatures;
  read_fields(temperatures, value.is_array() ? value : Json::array({value}), "train.sample_temperature");
  PRISM_CHECK(!temperatures.empty(), "recipe",
              "train.sample_temperature: expected a number or a list of them; found an empty list; write for instance "
              "[0.5,1].");
  for (const double temperature : temperatures)
    PRISM_CHECK(temperature >= 0, "recipe", "train.sample_temperature: expected at least 0; found {}; raise it.",
                temperature);
  return temperatures;
}

std::vector<int64_t> save_steps(const Json& value, int64_t total) {
  std::vector<int64_t> steps;
  if (value == "none") return steps;
  if (value == "log") {
    for (int64_t step = 1; step <= total; step *= 2) steps.push_back(step);
    return steps;
  }
  PRISM_CHECK(value.is_array(), "recipe",
              "train.save_steps: expected none, log or a list of steps; found {}; write for instance [1,2,1000].",
              to_text(value));
  read_fields(steps, value, "train.save_steps");
  for (const int64_t step : steps)
    PRISM_CHECK(step >= 1, "recipe", "train.save_steps: expected steps of at least 1; found {}; leave it out.", step);
  std::erase_if(steps, [&](int64_t step) { return step > total; });
  std::sort(steps.begin(), steps.end());
  return steps;
}

bool divides_windows(const Recipe& recipe) {
  return recipe.train.prompts || layers_with_budgets(recipe.model) > 0;
}

}  // namespace prism
