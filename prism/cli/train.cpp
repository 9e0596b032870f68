// prism train: trains a model from a recipe and its overrides into a run folder.
#include <algorithm>
#include <filesystem>
#include <set>

#include "prism/checkpoint/run_state.h"
#include "prism/cli/command.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/console.h"
#include "prism/core/files.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/stop.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/models/cost.h"
#include "prism/models/device.h"
#include "prism/training/trainer.h"

namespace prism {
namespace {

/// Adds an option for each recipe field: --train.tokens 4M. recipe_help() describes them. @param overrides  receives
/// paths and values in the order of the command line.
void add_recipe_fields(CLI::App& app, std::vector<Override>& overrides) {
  std::set<std::string> paths;
  for (const auto& row : describe_fields<Recipe>()) {
    const std::string path = row.path.substr(0, row.path.find('['));
    paths.insert(path);
    // Fields that hold other fields take JSON.
    for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1))
      paths.insert(path.substr(0, dot));
  }
  for (const auto& path : paths)
    app.add_option_function<std::string>(
           "--" + path, [&overrides, path](const std::string& text) { overrides.emplace_back(path, text); })
        ->trigger_on_parse()
        ->take_last()
        ->group(kDescribedInFooter);
}

/// Writes fields of list elements as --set, since an option's name cannot be a pattern: --model.layers[0-3].heads 3
/// becomes --set model.layers[0-3].heads=3.
Arguments with_sets(const Arguments& arguments) {
  Arguments words;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const size_t bracket = word.find('['), equals = word.find('=');
    if (!word.starts_with("--") || bracket == std::string::npos || bracket > equals) {
      words.push_back(word);
      continue;
    }
    PRISM_CHECK(equals != std::string::npos || i + 1 < arguments.size(), "train",
                "expected a value after {}; found none; give one.", word);
    words.insert(words.end(), {"--set", word.substr(2) + (equals == std::string::npos ? "=" + arguments[++i] : "")});
  }
  return words;
}

std::string recipe_help() {
  std::string text =
      "Recipe fields [defaults]; each is also an option, e.g. --train.tokens 4M or --model.layers[0-3].heads 3:\n";
  for (const auto& row : describe_fields<Recipe>())
    text += fmt::format("  {:<34} {} [{}]\n", row.path, row.help, row.default_value);
  return text;
}

void print_plan(const Trainer& trainer, const std::vector<std::string>& notes, const std::string& out, bool resumed) {
  const auto heads = heads_of(trainer.recipe().model);
  const auto beyond = schedule_cost(trainer.recipe().model);
  if (!resumed && !beyond.neutral())
    tell("note: compared with a uniform model that has the last layer's heads in all layers: {}\n", describe(beyond));
  if (!resumed)
    for (const auto& warning : schedule_warnings(trainer.recipe().model)) tell("note: {}\n", warning);
  for (const auto& note : notes) tell("note: {}\n", note);
  tell("train: {}, heads x layers {}, into {}\n", plain_line(trainer.recipe().name), format_head_schedule(heads),
       plain_line(out));
}

/// The recipe of the run to resume. A recipe given again on the command line must equal the one that the run began
/// with.
Recipe recipe_to_resume(const std::string& out, const std::string& recipe_file,
                        const std::vector<Override>& overrides) {
  auto recipe = load_run_recipe(out);
  if (recipe_file.empty()) {
    PRISM_CHECK(
        overrides.empty(), "train",
        "expected --resume without other recipe fields, because a run keeps its recipe; found {}; leave it out.",
        overrides[0].first);
    return recipe;
  }
  const auto field = differing_field(recipe, load_recipe(recipe_file, overrides));
  PRISM_CHECK(
      field.empty(), "train",
      "expected the recipe that {} began with; found another value of {}; leave --recipe and its fields out, or "
      "start a new run.",
      out, field);
  return recipe;
}

/// The number of threads that the run began with, so that results are equal bit for bit. --threads and OMP_NUM_THREADS
/// take precedence.
int threads_to_resume(const std::string& out, int requested) {
  const auto last = last_checkpoint(out);
  const auto limit = thread_limit(requested);
  if (!last || requested > 0 || limit.reason == "OMP_NUM_THREADS") return requested;
  try {
    return std::min(limit.threads, static_cast<int>(load_run_state(*last).threads));
  } catch (const InputError&) {
    return requested;  // the trainer reports what is wrong with the checkpoint
  }
}

/// What to do once files can be written again.
std::string way_on(const std::string& out) {
  if (!is_there(std::filesystem::path(out) / kRunRecipeName)) return "run again";
  return fmt::format("continue with: prism train --out {} --resume", shell_word(out));
}

}  // namespace

int run_train(const Arguments& arguments) {
  std::string recipe_file, out, device = "cpu";
  std::vector<std::string> sets;
  int threads = 0;
  bool resume = false, restart = false, json = false;
  CLI::App app("Train a model from a recipe; resume a run.", "prism train");
  app.add_option("--recipe", recipe_file, "the recipe, a JSON file such as configs/head_schedules/small_prism.json");
  app.add_option("--out", out, "run folder: records, checkpoints and the complete recipe")
      ->type_name("FOLDER")
      ->default_str("runs/<recipe>");
  app.add_option("--set", sets, "FIELD=VALUE: override one recipe field, like --FIELD VALUE; may be repeated")
      ->allow_extra_args(false);
  app.add_flag("--resume", resume,
               "continue the run in --out from its last checkpoint, with its recipe and its number of threads");
  app.add_flag("--restart", restart, "start over in the folder of a run that failed or was stopped; deletes its files");
  add_device_option(app, device);
  add_threads_option(app, threads);
  app.add_flag("--json", json, "print the result as one JSON object");
  std::string lone_word;
  app.add_option("WORD", lone_word)->group("");
  std::vector<Override> fields;
  add_recipe_fields(app, fields);
  app.footer(recipe_help());
  if (!parse(app, with_sets(arguments), "1 failed or stopped before the end")) return 0;

  PRISM_CHECK(lone_word.empty() || (recipe_file.empty() && !resume), "train",
              "expected only options; found {}; leave it out.", shell_word(lone_word));
  PRISM_CHECK(lone_word.empty(), "train", "expected --recipe before the recipe; found only {0}; write --recipe {0}.",
              shell_word(lone_word));
  auto overrides = overrides_from_sets(sets, "train");
  overrides.insert(overrides.end(), fields.begin(), fields.end());
  PRISM_CHECK(!recipe_file.empty() || (resume && !out.empty()), "train",
              "expected {}; found none; see prism train --help.",
              resume ? "--out, the run to resume" : "--recipe FILE, or --resume with --out DIR");
  PRISM_CHECK(!resume || !restart, "train",
              "expected --resume, which continues a run, or --restart, which deletes it; found both; leave one out.");
  if (out.empty()) out = (std::filesystem::path("runs") / std::filesystem::path(recipe_file).stem()).string();
  auto recipe = resume ? recipe_to_resume(out, recipe_file, overrides) : load_recipe(recipe_file, overrides);
  const int used_threads = start_compute(resume ? threads_to_resume(out, threads) : threads, device);

  catch_stop_signals();
  const char* unit = noun_of(unit_of(recipe));
  const bool has_finals = fields_to_json(recipe.final) != fields_to_json(FinalOptions());
  auto objective = make_objective(recipe);
  Trainer trainer(std::move(recipe), out, std::move(objective), {used_threads, open_device(device)});
  TrainResult result;
  try {
    const auto notes = trainer.prepare(resume ? Start::resume : restart ? Start::restart : Start::fresh);
    print_plan(trainer, notes, out, resume);
    result = trainer.run();
  } catch (const WriteError& error) {
    throw FailedError("train", fmt::format("{}; then {}.", error.reason(), way_on(out)));
  }
  if (json) {
    fmt::print("{}\n", to_text({{"run", out},
                                {"finished", result.finished},
                                {"step", result.step},
                                {unit, result.trained},
                                {result.metric.name, result.value ? Json(*result.value) : Json()}}));
  } else if (result.finished) {
    fmt::print("{}: {} steps, {} {}{}\n", plain_line(out), result.step, result.trained, unit,
               !result.value ? "" : fmt::format(", validation {} {:.4f}", result.metric.noun(), *result.value));
    if (has_finals) fmt::print("final measurements: prism report {}\n", shell_word(out));
  }
  return result.finished ? 0 : 1;
}

}  // namespace prism
