// Runs prism info as a user does: the costs of models, and the limits of this machine.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "tests/cli/commands.h"

namespace prism {
namespace {

TEST(Info, AgreesWithItselfAsJson) {
  const auto json = Json::parse(run({"info", trained(), "--json"}).out);
  EXPECT_EQ(json["layers"].size(), 2u);
  EXPECT_EQ(json["schedule"], "1x1,2x1");
  const auto text = run({"info", trained()});
  EXPECT_NE(text.out.find(std::to_string(json["parameters"].get<int64_t>())), std::string::npos);
  for (const std::vector<std::string>& words : {std::vector<std::string>{"info", "recipe.json", "--json"},
                                                {"info", "recipe.json", "--json", "--vocab-size", "300"}})
    EXPECT_EQ(run(words).out, run({"info", trained(), "--json"}).out) << "the vocabulary of the recipe's data";
  auto recipe = Json::parse(read_text(Workshop::folder() / "recipe.json"));
  recipe["data"]["folder"] = "nowhere";
  write_text(Workshop::folder() / "without_data.json", recipe.dump());
  expect_sentence(run({"info", "without_data.json"}), 2, {"--vocab-size"});
  EXPECT_EQ(json["layers"][0]["budget"], "none");
  EXPECT_EQ(text.out.find("Head budgets"), std::string::npos);
  recipe = Json::parse(read_text(Workshop::folder() / "recipe.json"));
  recipe["model"]["budget"]["kind"] = "learned";
  write_text(Workshop::folder() / "budget_recipe.json", recipe.dump());
  const auto with_budgets = run({"info", "budget_recipe.json"});
  EXPECT_CONTAINS(with_budgets.out, "Head budgets in 2 of 2 layers");
  EXPECT_CONTAINS(with_budgets.out, "; prism report shows the share of heads in training.\n");
  auto classifier = recipe;
  classifier["model"].update({{"classes", 2}, {"attention", "full"}});
  classifier["train"] = Json::object();
  write_text(Workshop::folder() / "classifier_recipe.json", classifier.dump());
  EXPECT_CONTAINS(run({"info", "classifier_recipe.json", "--vocab-size", "300"}).out,
                  "; prism analyse budgets measures what a model keeps.\n");
  recipe["model"]["mirror_middle"] = 0;
  write_text(Workshop::folder() / "mirror_recipe.json", recipe.dump());
  const auto mirrored = run({"info", "mirror_recipe.json"});
  EXPECT_NE(mirrored.out.find("\"1 of 0\": the layer uses W_up and W_down of layer 0"), std::string::npos)
      << mirrored.out;
  EXPECT_EQ(Json::parse(run({"info", "mirror_recipe.json", "--json"}).out)["layers"][1]["mirror_of"], 0);
  recipe["model"]["skip"] = 1;
  write_text(Workshop::folder() / "skip_recipe.json", recipe.dump());
  EXPECT_CONTAINS(run({"info", "skip_recipe.json"}).out,
                  "Training adds a second head, which predicts 1 token ahead and has ");
  recipe["model"]["vocab_size"] = -4;
  write_text(Workshop::folder() / "negative.json", recipe.dump());
  expect_sentence(run({"info", "negative.json"}), 2, {"model.vocab_size", "found -4"});
  expect_sentence(run({"info", "data"}), 2, {"config.json"});
}

TEST(Info, NeedsAModelWithAName) {
  expect_sentence(run({"info", ""}), 2, {"MODEL", "found nothing"});
  expect_sentence(run({"info", "recipe.json", "--vocab-size", "0"}), 2, {"--vocab-size", "1", "16777216"});
  expect_sentence(run({"info"}), 2, {"MODEL or --machine", "neither"});
  expect_sentence(run({"info", "--machine", "recipe.json"}), 2, {"both"});
  expect_sentence(run({"info", "recipe.json", "--threads", "3"}), 2, {"expected --machine with --threads; found none"});
}

TEST(Info, OfTheMachineNamesItsLimits) {
  const auto outcome = run({"info", "--machine", "--json", "--threads", "1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = Json::parse(outcome.out);
  EXPECT_EQ(json["threads"], 1);
  EXPECT_EQ(json["threads_bound_by"], "--threads");
  EXPECT_TRUE(json["dtype"] == "bfloat16" || json["dtype"] == "float32") << json["dtype"];
  for (const char* limit : {"bfloat16_gflops", "float32_gflops", "read_gb_per_s"}) EXPECT_GT(json[limit], 0) << limit;
  EXPECT_NE(run({"info", "--machine", "--threads", "1"}).out.find("kernels for"), std::string::npos);
  ::setenv("PRISM_ISA", "portable", 1);
  EXPECT_EQ(Json::parse(run({"info", "--machine", "--json", "--threads", "1"}).out)["dtype"], "float32");
  ::unsetenv("PRISM_ISA");
  expect_sentence(run({"info", "--machine", "recipe.json"}), 2, {"MODEL or --machine", "both"});
  expect_sentence(run({"info"}), 2, {"MODEL or --machine", "neither"});
}

}  // namespace
}  // namespace prism
