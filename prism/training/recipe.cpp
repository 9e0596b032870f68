#include "prism/training/recipe.h"

#include <algorithm>

#include "prism/checkpoint/run_state.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/random.h"
#include "prism/kernels/compute_type.h"
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
  for (const char* name : {"name", "from", "init", "final"}) recipe.erase(name);
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
  if (given.model.vocab_size == 0) given.model.vocab_size = run.model.vocab_size;  // 0 leaves it to the data
  complete(given.model);
  const auto changes = Json::diff(fields_to_json(run), fields_to_json(given));
  return changes.empty() ? "" : changes[0]["path"].get<std::string>().substr(1);
}

void check_train_options(const TrainOptions& options) {
  find_compute_type(options.dtype);
  check(options.optimizer_options);
  check_learning_rate_schedule(options.lr_schedule);
  const auto at_least = [](const char* name, double value, double least) {
    PRISM_CHECK(value >= least, "recipe", "train.{}: expected at least {}; found {}; raise it.", name, least, value);
  };
  at_least("tokens", static_cast<double>(options.tokens), 1);
  at_least("batch_rows", static_cast<double>(options.batch_rows), 1);
  at_least("accumulate", static_cast<double>(options.accumulate), 1);
  at_least("log_steps", static_cast<double>(options.log_steps), 1);
  at_least("diagnose_steps", static_cast<double>(options.diagnose_steps), 0);
  at_least("keep_last", static_cast<double>(options.keep_last), 1);
  at_least("learning_rate", options.learning_rate, 0);
  at_least("z_loss", options.z_loss, 0);
  at_least("warmup_tokens", static_cast<double>(options.warmup_tokens), 0);
  at_least("eval_every_tokens", static_cast<double>(options.eval_every_tokens), 0);
  at_least("eval_tokens", static_cast<double>(options.eval_tokens), 0);
  at_least("checkpoint_every_tokens", static_cast<double>(options.checkpoint_every_tokens), 0);
  at_least("sample_tokens", static_cast<double>(options.sample_tokens), 1);
  at_least("sample_every_tokens", static_cast<double>(options.sample_every_tokens), 0);
  sample_temperatures(options.sample_temperature);
  for (const auto& [name, value] :
       {std::pair{"tokens", options.tokens}, {"batch_rows", options.batch_rows}, {"accumulate", options.accumulate}})
    // The limits keep the tokens of a step from overflowing.
    if (const int64_t most = int64_t{1} << (name == std::string_view("tokens") ? 50 : 16); value > most)
      throw InputError("recipe", fmt::format("train.{}: expected at most {}; found {}; lower it.", name, most, value));
  for (const auto& [name, share] : {std::pair{"final_share", options.final_share},
                                    {"warmup_share", options.warmup_share},
                                    {"decay_share", options.decay_share}})
    PRISM_CHECK(share >= 0 && share <= 1, "recipe", "train.{}: expected a share within 0-1; found {}; change it.", name,
                share);
}

int64_t step_tokens(const Recipe& recipe) {
  return recipe.train.batch_rows * recipe.train.accumulate * recipe.model.context;
}

int64_t total_steps(const Recipe& recipe) {
  return (recipe.train.tokens + step_tokens(recipe) - 1) / step_tokens(recipe);
}

void check_training(const Recipe& recipe) {
  check_train_options(recipe.train);
  PRISM_CHECK(step_tokens(recipe) <= std::max(recipe.train.tokens, recipe.model.context), "recipe",
              "expected a step (batch_rows x accumulate x context) of at most train.tokens, {}; found {}; make the "
              "batch smaller.",
              recipe.train.tokens, step_tokens(recipe));
}

LearningRate learning_rate_of(const TrainOptions& options, int64_t total_tokens) {
  const auto total = static_cast<double>(total_tokens);
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

}  // namespace prism
