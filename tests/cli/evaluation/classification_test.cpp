// Runs prism eval --task classification as a user does.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/cli/classifiers.h"

namespace prism {
namespace {

TEST_F(ClassifierCommands, EvalPrintsScoresAndTheConfusionMatrix) {
  const auto outcome = prism({"eval", "budget", "data", "--task", "classification", "--against", "uniform"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  for (const char* words : {"accuracy          ", "balanced accuracy ", "macro-F1", "40, split test of data", "recall",
                            "share of heads s", "computed heads", "difference        ", "McNemar's exact test"})
    EXPECT_NE(outcome.out.find(words), std::string::npos) << words << " in " << outcome.out;
}

TEST_F(ClassifierCommands, EvalPrintsJson) {
  const auto outcome = prism(
      {"eval", "budget", "data", "--task", "classification", "--against", "uniform", "--split", "valid", "--json"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto lines = lines_of(outcome);
  ASSERT_EQ(lines.size(), 3u);
  EXPECT_EQ(lines[0]["classes"], (std::vector<std::string>{"bright", "dark"}));
  EXPECT_EQ(lines[0]["kept_share"].size(), 2u);
  EXPECT_FALSE(lines[1].contains("kept_share"));
  int64_t sum = 0;
  for (const auto& row : lines[0]["confusion"])
    for (const auto& count : row) sum += count.get<int64_t>();
  EXPECT_EQ(sum, lines[0]["examples"]);
  EXPECT_EQ(lines[0]["predicted"].size(), lines[0]["examples"]);
  EXPECT_DOUBLE_EQ(lines[2]["difference"].get<double>(),
                   lines[0]["accuracy"].get<double>() - lines[1]["accuracy"].get<double>());
}

TEST_F(ClassifierCommands, EvalChangesTheBudgetsOfTheFirstModelAlone) {
  const auto evaluate = [](std::vector<std::string> words) {
    const auto outcome = prism(std::move(words));
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return lines_of(outcome);
  };
  const std::vector<std::string> words = {"eval", "budget", "data", "--task", "classification", "--json"};
  const auto own = evaluate(words);
  auto with_all = words;
  with_all.insert(with_all.end(), {"--budget-heads", "all", "--budget-gain", "mean", "--against", "budget"});
  const auto changed = evaluate(with_all);
  ASSERT_EQ(changed.size(), 3u);
  EXPECT_EQ(changed[0]["kept_share"], (std::vector<double>{1, 1}));
  EXPECT_EQ(changed[0]["budget_heads"], "all");
  EXPECT_EQ(changed[0]["budget_gain"], "mean");
  EXPECT_EQ(changed[1]["loss"], own.at(0)["loss"]);
  EXPECT_EQ(changed[1]["budget_heads"], "own");
}

TEST_F(ClassifierCommands, EvalRefusesWrongInputWithASentence) {
  const auto evaluate = [](std::vector<std::string> words) {
    words.insert(words.begin(), "eval");
    words.insert(words.end(), {"--task", "classification"});
    return prism(words);
  };
  expect_sentence(evaluate({"uniform", "data", "data"}), 2, {"expected one data folder", "found 2"});
  expect_sentence(evaluate({"uniform", "nowhere"}), 2, {"expected labelled examples in nowhere"});
  expect_sentence(evaluate({"uniform", "data", "--split", "best"}), 2,
                  {"expected the split train, valid or test", "best"});
  expect_sentence(evaluate({"uniform", "data", "--stride", "2"}), 2, {"--stride", "belongs to perplexity"});
  expect_sentence(evaluate({"uniform", "data", "--batch", "0"}), 2, {"--batch: expected 1 to 65536 texts"});
  expect_sentence(evaluate({"budget", "data", "--budget-heads", "most"}), 2, {"expected own, all, random or shuffled"});
  expect_sentence(evaluate({"uniform", "data", "--budget-gain", "mean"}), 2, {"expected a model with head budgets"});
  std::filesystem::copy(folder() / "uniform", folder() / "renamed", std::filesystem::copy_options::recursive);
  const auto rename = [](const char* classes) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder() / "renamed"))
      if (entry.path().filename() == "classes.json") write_text(entry.path(), classes);
  };
  rename(R"({"classes": ["cold", "warm"], "text_fields": [], "words": false})");
  expect_sentence(evaluate({"renamed", "data"}), 2, {"expected examples of the model's classes, 2 (cold and warm)"});
  rename(R"({"classes": ["0", "1"], "text_fields": [], "words": false})");
  EXPECT_EQ(evaluate({"renamed", "data"}).status, 0) << "the names of a model without classes.json";
  expect_sentence(evaluate({"data", "data"}), 2, {"expected a model folder"});
  expect_sentence(prism({"eval", "uniform", "text.txt"}), 2, {"expected a language model", "--task classification"});
  expect_sentence(prism({"eval", "uniform", "text.txt", "--split", "test"}), 2,
                  {"--split", "belongs to classification"});
}

}  // namespace
}  // namespace prism
