// What a sweep file means, and which of its runs are finished.
#include "prism/training/sweep/sweep.h"

#include <gtest/gtest.h>

#include "prism/training/sweep/schedule_sweep.h"
#include "tests/core/message_of.h"
#include "tests/data/labelled/made_examples.h"
#include "tests/training/sweep_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTwoArms = R"({"recipe": "base.json", "seeds": [4, 2],
  "arms": {"uniform": {}, "progressive": {"model.schedule": "1x1,2x1"}}})";

TEST_F(SweepFolder, VariesOneRecipeByArmsAndGrid) {
  const auto sweep = load(R"({"recipe": "base.json", "set": {"train.batch_rows": 4},
    "arms": {"a": {}, "b": {"model.schedule": "1x1,2x1"}}, "grid": {"train.learning_rate": [0.1, 2e-2]}})");
  ASSERT_EQ(sweep.arms.size(), 4u);
  EXPECT_EQ(sweep.arms[3].name, "b_learning_rate=0.02");
  EXPECT_EQ(sweep.arms[3].recipe.name, "b_learning_rate=0.02");
  EXPECT_EQ(sweep.arms[3].recipe.model.layers[0].heads, 1);
  EXPECT_EQ(sweep.arms[0].recipe.model.layers[0].heads, 2);
  EXPECT_EQ(sweep.arms[3].recipe.train.learning_rate, 0.02);
  EXPECT_EQ(sweep.arms[2].recipe.train.learning_rate, 0.1);
  for (const auto& arm : sweep.arms) EXPECT_EQ(arm.recipe.train.batch_rows, 4);
  EXPECT_EQ(sweep.seeds, (std::vector<int64_t>{1, 2, 3}));
}

TEST_F(SweepFolder, TakesAnInlineRecipeAndOverridesOfTheCommandLineLast) {
  const auto sweep = load(fmt::format(R"({{"recipe": {{"model": {{"vocab_size": 9, "d_model": 16, "context": 8,
    "schedule": "2x2", "ffn_width": 8}}, "data": {{"folder": "{}"}}}}, "arms": {{"a": {{"train.tokens": 640}}}}}})",
                                      path("data")),
                          {{"train.tokens", "1k"}});
  EXPECT_EQ(sweep.arms[0].recipe.train.tokens, 1000);
}

TEST_F(SweepFolder, KeepsToOneSetOfValidationTokens) {
  EXPECT_REFUSED(load(R"({"recipe": "base.json", "arms": {"a": {}, "b": {"train.eval_tokens": 8}}})"),
                 "validated on the same data");
}

TEST_F(SweepFolder, TakesARunForDoneOnlyWithItsLastCheckpoint) {
  const auto sweep = load(kTwoArms);
  put_run("run", sweep.arms[0].recipe, /*finished=*/true);
  EXPECT_TRUE(is_finished(path("run"))) << "records alone";
  write_file(path("run") + "/records.jsonl", R"({"kind":"run"})"
                                             "\n"
                                             R"({"kind":"end","step":4})"
                                             "\n");
  make_folder(path("run") + "/checkpoints/step-00000002");
  EXPECT_FALSE(is_finished(path("run"))) << "killed between its last record and its last checkpoint";
  make_folder(path("run") + "/checkpoints/step-00000004");
  EXPECT_TRUE(is_finished(path("run")));
}

TEST_F(SweepFolder, OfEveryConfigLoads) {
  make_examples(path("labelled"), 1000);  // some arms take a tenth, and need a batch
  int files = 0;
  for (const auto& entry : fs::directory_iterator(fs::path(PRISM_SOURCE_DIR) / "configs/sweeps")) {
    ++files;
    const auto file = fields_from_json<SweepFile>(read_json(entry.path().string()), "");
    EXPECT_NE(file.from, "") << entry.path();
    const bool of_classifiers = file.set.contains("model.classes");
    // Final texts need a tokenizer, which this data lacks.
    std::vector<Override> small = of_classifiers
                                      ? std::vector<Override>{{"data.folder", path("labelled")}, {"model.classes", "3"}}
                                      : std::vector<Override>{{"data.folder", path("data")}, {"final.texts", "[]"}};
    // The runs that others start from are made by other sweeps.
    for (const char* start : {"init", "init_embedding"}) small.push_back({start, ""});
    if (file.arms.empty() && file.grid.empty()) {
      EXPECT_GE(load_schedule_search(entry.path(), small).candidates.size(), 2u) << entry.path();
    } else {
      EXPECT_GE(load_sweep(entry.path(), small).arms.size(), 1u) << entry.path();
    }
  }
  EXPECT_GE(files, 4);
}

/// The ladder's rungs exist as separate recipes and as arms of a sweep; both must agree.
TEST_F(SweepFolder, OfTheLadderTrainsTheRecipesOfItsRungs) {
  const fs::path configs = fs::path(PRISM_SOURCE_DIR) / "configs";
  const std::vector<Override> small = {{"data.folder", path("data")}};
  const auto sweep = load_sweep(configs / "sweeps/ladder.json", small);
  EXPECT_EQ(sweep.arms.size(), 6u);
  for (const auto& arm : sweep.arms) {
    Recipe rung = load_recipe(configs / "ladder" / (arm.name + ".json"), small), of_arm = arm.recipe;
    rung.model.vocab_size = of_arm.model.vocab_size = 2048;
    complete(rung.model);
    complete(of_arm.model);
    rung.from = of_arm.from = "";
    rung.name = of_arm.name = "";
    rung.seed = of_arm.seed;
    EXPECT_EQ(fields_to_json(of_arm), fields_to_json(rung)) << arm.name;
  }
}

TEST_F(SweepFolder, PutsTheBaselineFirst) {
  const auto sweep = load(R"({"recipe": "base.json", "baseline": "c",
    "arms": {"a": {"train.tokens": 64}, "b": {"train.tokens": 128}, "c": {}}})");
  EXPECT_EQ(sweep.arms[0].name, "c");
  EXPECT_EQ(sweep.arms[1].name, "a");
  EXPECT_EQ(sweep.arms[2].name, "b");
}

TEST_F(SweepFolder, RefusesWhatNoSweepCanBe) {
  const auto refuses = [&](const std::string& text, const std::string& part) {
    SCOPED_TRACE(text);
    EXPECT_REFUSED(load(text), part);
  };
  refuses(R"({"recipe": "base.json"})", "expected variations");
  refuses(R"({"arms": {"a": {}}})", "found none");
  refuses(R"({"recipe": "none.json", "arms": {"a": {}}})", "none.json");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"train.tokns": 4}}})", "did you mean \"tokens\"?");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"train.tokens": "many"}}})", "arm a");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"train.tokens": 0}}})", "at least 1");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"model.schedule": "5x2"}}})", "heads that divide");
  refuses(R"({"recipe": "base.json", "arms": {"a": {}, "b": {}}})", "the same recipe for a and b");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"seed": 4}}})", "\"seeds\"");
  refuses(R"({"recipe": "base.json", "grid": {"seed": [4]}})", "\"seeds\"");
  refuses(R"({"recipe": "base.json", "grid": {"train.tokens": []}})", "an empty one");
  refuses(R"({"recipe": "base.json", "arms": {"a": 5}})", "an object of fields");
  refuses(R"({"recipe": "base.json", "arms": {"../a": {}}})", "letters, digits");
  refuses(R"({"recipe": "base.json", "arms": {"a": {}}, "seeds": []})", "empty list");
  refuses(R"({"recipe": "base.json", "arms": {"a": {}}, "seeds": [1, 1]})", "each seed once");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"seeds": []}}})", "arm a: expected seeds; found an empty list");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"seeds": [1, 1]}}})", "arm a: expected each seed once");
  refuses(R"({"recipe": "base.json", "set": {"seeds": [1]}, "arms": {"a": {}}})", "set: expected fields of the recipe");
  refuses(R"({"recipe": "base.json", "grid": {"seeds": [1]}})", "grid: expected fields of the recipe; found seeds");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"seeds": [4]}}})", "arm a: expected some of the sweep's seeds");
  refuses(R"({"recipe": "base.json", "arms": {"a": {"seeds": 1}}})", "arm a.seeds");
  refuses(R"({"recipe": "base.json", "arms": {"a": {}}, "baseline": "b"})", "baseline");
  refuses(R"({"recipe": "base.json", "arms": {"a": {}}, "keep": "all"})", "checkpoints or records");
  refuses(R"({"recipe": "base.json", "arm": {"a": {}}})", "did you mean \"arms\"?");
}

TEST_F(SweepFolder, RefusesDataOfDifferentTokenizers) {
  put_data("other", "another");
  EXPECT_REFUSED(load(fmt::format(R"({{"recipe": "base.json", "arms": {{"a": {{}}, "b": {{"data.folder": "{}"}}}}}})",
                                  path("other"))),
                 "one tokenizer");
}

TEST_F(SweepFolder, PlansAnArmForItsOwnSeeds) {
  const auto planned = plan_sweep(load(R"({"recipe": "base.json", "seeds": [4, 2, 7],
               "arms": {"a": {}, "b": {"model.schedule": "2x1,4x1", "seeds": [7, 4]}}})"),
                                  path("out"), "");
  std::vector<std::string> names;
  for (const auto& run : planned) names.push_back(run.name);
  EXPECT_EQ(names, (std::vector<std::string>{"a-seed4", "b-seed4", "a-seed2", "a-seed7", "b-seed7"}));
}

TEST_F(SweepFolder, PlansSeedBySeedAndKnowsRunsByRecipeAndSeedWhateverTheirName) {
  const auto sweep = load(kTwoArms);
  auto planned = plan_sweep(sweep, path("out"), "");
  ASSERT_EQ(planned.size(), 4u);
  EXPECT_EQ(planned[0].name, "uniform-seed4");
  EXPECT_EQ(planned[1].name, "progressive-seed4");
  EXPECT_EQ(planned[3].recipe.seed, 2);
  for (const auto& run : planned) EXPECT_EQ(run.state, SweepRun::State::absent);

  put_run("out/renamed", planned[0].recipe, true);
  put_run("out/progressive-seed4", planned[1].recipe, false);
  put_run("records/kept", planned[2].recipe, true);
  put_run("records/unfinished", planned[3].recipe, false);
  planned = plan_sweep(sweep, path("out"), path("records"));
  EXPECT_EQ(planned[0].state, SweepRun::State::finished);
  EXPECT_EQ(planned[0].folder, path("out/renamed"));
  EXPECT_EQ(planned[1].state, SweepRun::State::begun);
  EXPECT_EQ(planned[2].state, SweepRun::State::finished);
  EXPECT_EQ(planned[2].folder, path("records/kept"));
  EXPECT_EQ(planned[3].state, SweepRun::State::absent) << "an unfinished run among the records is ignored";
}

TEST_F(SweepFolder, RefusesAFolderWithAnotherRecipe) {
  const auto sweep = load(kTwoArms);
  auto other = plan_sweep(sweep, path("out"), "")[0].recipe;
  other.train.learning_rate = 0.5;
  put_run("out/uniform-seed4", other, true);
  EXPECT_REFUSED(plan_sweep(sweep, path("out"), ""), "train/learning_rate");
  write_file(path("out/uniform-seed4/recipe.json"), "{");
  EXPECT_REFUSED(plan_sweep(sweep, path("out"), ""), "JSON");
  fs::rename(path("out/uniform-seed4"), path("out/foreign"));
  EXPECT_EQ(plan_sweep(sweep, path("out"), "")[0].state, SweepRun::State::absent);
}

}  // namespace
}  // namespace prism
