#include "prism/training/sweep/sweep.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/records.h"
#include "prism/core/text/names.h"
#include "prism/training/objective/objective.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// Names are used as folder names and as shell words.
bool may_be_in_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || std::string_view("._+-=,").find(c) != std::string_view::npos;
}

/// An arm's name and fields, before they become a recipe.
struct Variation {
  std::string name;
  std::vector<Override> fields;
  std::vector<int64_t> seeds;
};

/// A value as the text of a flag.
std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : to_text(value);
}

/// A value as part of an arm's name; characters not allowed in names become hyphens.
std::string name_of_value(const Json& value) {
  std::string text = value_text(value);
  for (char& c : text)
    if (!may_be_in_name(c)) c = '-';
  return text;
}

void check_is_no_seed(const std::string& field, const std::string& owner) {
  PRISM_CHECK(
      field != "seed" && field != "seeds", "sweep",
      "{}: expected fields of the recipe; found {}; give \"seeds\" to the sweep, so that runs can be paired, or "
      "to an arm.",
      owner, field);
}

std::vector<Override> overrides_from(const Json& fields, const std::string& owner) {
  PRISM_CHECK(fields.is_object(), "sweep", "{}: expected an object of fields and values; found {}; write {{...}}.",
              owner, fields.type_name());
  std::vector<Override> overrides;
  for (const auto& [field, value] : fields.items()) {
    check_is_no_seed(field, owner);
    overrides.emplace_back(field, value_text(value));
  }
  return overrides;
}

void check_name(const std::string& name) {
  PRISM_CHECK(!name.empty() && name[0] != '.' && name[0] != '-' && name.size() <= 100 &&
                  std::all_of(name.begin(), name.end(), may_be_in_name),
              "sweep", "expected arm names of letters, digits and ._+-=, (at most 100); found \"{}\"; rename it.",
              name);
}

/// Combines every arm with every value of one grid field.
std::vector<Variation> vary(const std::vector<Variation>& arms, const std::string& field, const Json& values) {
  PRISM_CHECK(values.is_array() && !values.empty(), "sweep",
              "grid.{}: expected a list of values; found {}; write for instance [0.001, 0.002].", field,
              values.is_array() ? "an empty one" : values.type_name());
  check_is_no_seed(field, "grid");
  const std::string short_name = field.substr(field.rfind('.') + 1);
  std::vector<Variation> varied;
  for (const auto& arm : arms)
    for (const auto& value : values) {
      Variation next = arm;
      next.name += fmt::format("{}{}={}", arm.name.empty() ? "" : "_", short_name, name_of_value(value));
      next.fields.emplace_back(field, value_text(value));
      varied.push_back(std::move(next));
    }
  return varied;
}

/// @param owner  what the seeds belong to, for messages.
void check_seeds(const std::vector<int64_t>& seeds, const std::string& owner) {
  PRISM_CHECK(!seeds.empty(), "sweep", "{}: expected seeds; found an empty list; write for instance [1, 2, 3].", owner);
  PRISM_CHECK(std::set<int64_t>(seeds.begin(), seeds.end()).size() == seeds.size(), "sweep",
              "{}: expected each seed once; found {}; remove the duplicate.", owner, fmt::join(seeds, ", "));
}

/// Fields of an arm that are not fields of the recipe.
struct ArmFields {
  std::vector<int64_t> seeds;
  template <class Visitor>
  void visit(Visitor& v) {
    v("seeds", seeds, "seeds that this arm is trained with");
  }
};

Variation variation_of(const std::string& name, Json fields, const std::vector<int64_t>& all_seeds) {
  Variation arm{name, {}, all_seeds};
  if (const auto found = fields.find("seeds"); fields.is_object() && found != fields.end()) {
    arm.seeds = fields_from_json<ArmFields>({{"seeds", *found}}, "arm " + name).seeds;
    check_seeds(arm.seeds, "arm " + name);
    for (const int64_t seed : arm.seeds)
      PRISM_CHECK(std::find(all_seeds.begin(), all_seeds.end(), seed) != all_seeds.end(), "sweep",
                  "arm {}: expected some of the sweep's seeds ({}); found {}; add it to \"seeds\" of the sweep.", name,
                  fmt::join(all_seeds, ", "), seed);
    fields.erase(found);
  }
  arm.fields = overrides_from(fields, "arm " + name);
  return arm;
}

std::vector<Variation> variations_of(const SweepFile& file) {
  PRISM_CHECK(file.arms.is_object() && file.grid.is_object(), "sweep",
              "expected objects for arms and grid; found {} and {}; see prism sweep --help.", file.arms.type_name(),
              file.grid.type_name());
  PRISM_CHECK(
      !file.arms.empty() || !file.grid.empty(), "sweep",
      "expected variations in \"arms\" or \"grid\"; found none; name at least one, or look for some with --search "
      "schedules.");
  std::vector<Variation> arms;
  for (const auto& [name, fields] : file.arms.items()) arms.push_back(variation_of(name, fields, file.seeds));
  if (arms.empty()) arms.push_back({"", {}, file.seeds});
  for (const auto& [field, values] : file.grid.items()) arms = vary(arms, field, values);
  for (const auto& arm : arms) check_name(arm.name);
  return arms;
}

/// @param data  what the runs of each arm would record about their data.
void check_arms(const Sweep& sweep, const std::vector<StartRecord>& data) {
  for (size_t i = 0; i < sweep.arms.size(); ++i) {
    const auto& arm = sweep.arms[i];
    for (size_t j = 0; j < i; ++j) {
      PRISM_CHECK(sweep.arms[j].name != arm.name, "sweep", "expected each arm once; found {} twice; rename one.",
                  arm.name);
      PRISM_CHECK(identity(sweep.arms[j].recipe) != identity(arm.recipe), "sweep",
                  "expected arms that differ; found the same recipe for {} and {}; leave one out.", sweep.arms[j].name,
                  arm.name);
    }
    PRISM_CHECK(data[i].tokenizer == data[0].tokenizer, "sweep",
                "expected data of one tokenizer, so that losses per token can be compared; found {} for {} and {} for "
                "{}; tokenize both with the same.",
                data[0].tokenizer.value_or("none"), sweep.arms[0].name, data[i].tokenizer.value_or("none"), arm.name);
    PRISM_CHECK(
        data[i].validation == data[0].validation &&
            arm.recipe.train.eval_tokens == sweep.arms[0].recipe.train.eval_tokens,
        "sweep",
        "expected arms validated on the same data, so that they can be compared; found that {} and {} differ in "
        "data.folder's validation data or in train.eval_tokens; give both the same.",
        sweep.arms[0].name, arm.name);
  }
}

/// @param data  receives what a run of this arm would record about its data.
Recipe recipe_of(const Variation& arm, const Json& base, const std::string& source, const std::vector<Override>& before,
                 const std::vector<Override>& after, StartRecord& data) {
  auto overrides = before;
  overrides.insert(overrides.end(), arm.fields.begin(), arm.fields.end());
  overrides.insert(overrides.end(), after.begin(), after.end());
  try {
    auto recipe = recipe_from_json(base, source, overrides);
    recipe.name = arm.name;
    recipe.seed = 0;
    const bool is_open = recipe.model.vocab_size == 0;
    if (is_open) recipe.model.vocab_size = 1;  // a placeholder: a run takes it from its data
    complete(recipe.model);
    if (is_open) recipe.model.vocab_size = 0;
    check_training(recipe);
    for (const auto& model : {recipe.init, recipe.init_embedding})
      if (!model.empty()) find_model_folder(model);
    auto whole = recipe;
    const auto objective = make_objective(recipe);
    objective->open(whole);  // finds data that a run would refuse before other arms have trained
    objective->describe(data);
    check_training(whole);
    recipe.data.examples = whole.data.examples;
    return recipe;
  } catch (const InputError& error) {
    throw InputError("sweep", fmt::format("arm {}: {}", arm.name, error.sentence()));
  }
}

/// differing_field() without `name` and `from`.
std::string difference(const Recipe& run, Recipe planned) {
  planned.name = run.name;
  planned.from = run.from;
  return differing_field(run, planned);
}

/// The runs in a folder, sorted by name.
std::vector<std::pair<fs::path, Recipe>> runs_in(const fs::path& folder, const std::set<std::string>& planned) {
  std::vector<std::pair<fs::path, Recipe>> runs;
  if (folder.empty() || !fs::is_directory(folder)) return runs;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (!is_there(entry.path() / kRunRecipeName)) continue;
    try {
      runs.emplace_back(entry.path(), load_run_recipe(entry.path()));
    } catch (const InputError&) {
      if (planned.contains(entry.path().filename().string())) throw;  // a foreign run may have another format
    }
  }
  std::sort(runs.begin(), runs.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  return runs;
}

}  // namespace

StartRecord data_of_run(Recipe recipe) {
  const auto objective = make_objective(recipe);
  objective->open(recipe);
  StartRecord start;
  objective->describe(start);
  return start;
}

Sweep load_sweep(const fs::path& path, const std::vector<Override>& overrides) {
  return sweep_of(fields_from_json<SweepFile>(read_json(path.string()), ""), path, overrides);
}

Sweep sweep_of(const SweepFile& file, const fs::path& path, const std::vector<Override>& overrides) {
  PRISM_CHECK(file.prism_format == 1, "sweep", "{}: expected prism_format 1; found {}; leave it out.", path.string(),
              file.prism_format);
  PRISM_CHECK(file.recipe.is_string() || file.recipe.is_object(), "sweep",
              "{}: expected \"recipe\", the name of a file or a recipe itself; found {}; add it.", path.string(),
              file.recipe.is_null() ? "none" : file.recipe.type_name());
  PRISM_CHECK(file.keep == "checkpoints" || file.keep == "records", "sweep",
              "keep: expected checkpoints or records; found \"{}\"; choose one of them.", file.keep);
  check_seeds(file.seeds, path.string());
  for (const auto& [field, value] : overrides) check_is_no_seed(field, "--set");
  const auto source = file.recipe.is_string() ? path.parent_path() / file.recipe.get<std::string>() : path;
  const Json base = file.recipe.is_string() ? read_json(source.string()) : file.recipe;
  Sweep sweep{{}, file.seeds, file.keep == "checkpoints"};
  const auto shared = overrides_from(file.set, "set");
  std::vector<StartRecord> data;
  for (const auto& arm : variations_of(file))
    sweep.arms.push_back(
        {arm.name, recipe_of(arm, base, source.string(), shared, overrides, data.emplace_back()), arm.seeds});
  check_arms(sweep, data);
  if (file.baseline.empty()) return sweep;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < sweep.arms.size(); ++i) places[sweep.arms[i].name] = i;
  const auto place = static_cast<std::ptrdiff_t>(find_by_name(places, file.baseline, "sweep", "baseline"));
  std::rotate(sweep.arms.begin(), sweep.arms.begin() + place, sweep.arms.begin() + place + 1);
  return sweep;
}

SweepRun::State state_of(const fs::path& run) {
  if (is_finished(run)) return SweepRun::State::finished;
  return has_diverged(run) ? SweepRun::State::diverged : SweepRun::State::begun;
}

std::vector<SweepRun> plan_sweep(const Sweep& sweep, const fs::path& out, const fs::path& records) {
  std::vector<SweepRun> runs;
  std::set<std::string> names;
  for (const int64_t seed : sweep.seeds)
    for (const auto& arm : sweep.arms) {
      if (std::find(arm.seeds.begin(), arm.seeds.end(), seed) == arm.seeds.end()) continue;
      SweepRun run{fmt::format("{}-seed{}", arm.name, seed), arm.name, arm.recipe, {}, SweepRun::State::absent};
      run.recipe.seed = seed;
      run.folder = out / run.name;
      names.insert(run.name);
      runs.push_back(std::move(run));
    }
  auto present = runs_in(records, names);
  std::erase_if(present, [](const auto& run) { return state_of(run.first) == SweepRun::State::begun; });
  for (auto& run : runs_in(out, names)) present.push_back(std::move(run));
  for (auto& run : runs) {
    for (const auto& [folder, recipe] : present) {
      // A run that diverged may have been resumed since.
      if (run.state == SweepRun::State::finished || !difference(recipe, run.recipe).empty()) continue;
      const auto state = state_of(folder);
      if (run.state == SweepRun::State::absent || state == SweepRun::State::finished) {
        run.folder = folder;
        run.state = state;
      }
    }
    if (run.state != SweepRun::State::absent) continue;
    PRISM_CHECK(!is_there(run.folder / kRunRecipeName), "sweep",
                "expected {} to hold this sweep's run; found another value of {}; choose another --out, or delete "
                "that folder.",
                run.folder.string(), difference(load_run_recipe(run.folder), run.recipe));
  }
  return runs;
}

}  // namespace prism
