#include "prism/training/recipe.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/models/cost.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const fs::path kConfigs = fs::path(PRISM_SOURCE_DIR) / "configs";

ModelConfig complete_model(const fs::path& file) {
  auto recipe = load_recipe(file, {});
  check_options(recipe);
  if (recipe.model.vocab_size == 0) recipe.model.vocab_size = 4096;  // left open by the recipe: the tokenizer's
  complete(recipe.model);
  return recipe.model;
}

TEST(Configs, LoadCompleteAndSayWhereTheyComeFrom) {
  int files = 0;
  for (const auto& entry : fs::recursive_directory_iterator(kConfigs)) {
    if (entry.path().extension() != ".json" || entry.path().parent_path().filename() == "sweeps") continue;
    ++files;
    EXPECT_NO_THROW(complete_model(entry.path())) << entry.path();
    EXPECT_NE(load_recipe(entry.path(), {}).from, "") << entry.path();
  }
  EXPECT_GE(files, 13);
}

TEST(Configs, OfOneSizeCostTheSameToTheLastDigit) {
  const auto expect_same = [](const std::string& a, const std::string& b) {
    const auto first = model_cost(complete_model(kConfigs / "head_schedules" / (a + ".json")));
    const auto second = model_cost(complete_model(kConfigs / "head_schedules" / (b + ".json")));
    EXPECT_EQ(first.parameters, second.parameters) << a << " " << b;
    EXPECT_EQ(first.flops_per_token, second.flops_per_token) << a << " " << b;
  };
  for (const char* size : {"small", "medium", "large"})
    expect_same(std::string(size) + "_uniform", std::string(size) + "_prism");
  for (int i = 1; i <= 7; ++i) expect_same("small_uniform", "ablation_c" + std::to_string(i));
}

class RecipeFile {
 public:
  explicit RecipeFile(const std::string& text) { write_file(path(), text); }
  fs::path path() const { return folder_.path() / "recipe.json"; }

 private:
  TemporaryFolder folder_;
};

TEST(Recipe, AppliesOverridesOfLayersAfterTheShorthandAndOthersBefore) {
  const RecipeFile file(R"({"model": {"d_model": 64, "schedule": "4x4", "ffn_width": 8, "vocab_size": 9}})");
  auto recipe =
      load_recipe(file.path(), {{"model.layers[0-1].heads", "2"}, {"model.schedule", "4x3"}, {"train.tokens", "4M"}});
  complete(recipe.model);
  EXPECT_EQ(format_head_schedule(heads_of(recipe.model)), "2x2,4x1");
  EXPECT_EQ(recipe.train.tokens, 4000000);
}

TEST(Recipe, OfAnotherFormatIsRefusedWhereverItIsGiven) {
  EXPECT_THROW(load_recipe(kConfigs / "demo/uniform.json", {{"prism_format", "2"}}), InputError);
}

TEST(Recipe, SurvivesBeingSavedAndLoaded) {
  const RecipeFile file(R"({"model": {"d_model": 64, "schedule": "2x2,4x2", "ffn_width": 8, "vocab_size": 9},
                            "train": {"tokens": 1000, "learning_rate": 0.1234567890123, "save_steps": [3, 1]}})");
  auto recipe = load_recipe(file.path(), {});
  complete(recipe.model);
  const RecipeFile saved(fields_to_json(recipe).dump());
  auto again = load_recipe(saved.path(), {});
  complete(again.model);
  EXPECT_TRUE(equal_fields(recipe, again));
}

TEST(SaveSteps, AreNoneOrPowersOfTwoOrAList) {
  EXPECT_TRUE(save_steps("none", 100).empty());
  EXPECT_EQ(save_steps("log", 9), (std::vector<int64_t>{1, 2, 4, 8}));
  EXPECT_EQ(save_steps(Json::parse("[30, 10]"), 100), (std::vector<int64_t>{10, 30}));
  EXPECT_EQ(save_steps(Json::parse("[5, 101]"), 100), (std::vector<int64_t>{5}));
  EXPECT_THROW(save_steps(Json::parse("[0]"), 100), InputError);
  EXPECT_THROW(save_steps("sometimes", 100), InputError);
  EXPECT_THROW(save_steps(Json::parse("[\"a\"]"), 100), InputError);
}

}  // namespace
}  // namespace prism
