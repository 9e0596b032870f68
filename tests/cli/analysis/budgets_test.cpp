// Runs prism analyse budgets, and other analyses of classifiers, as a user does.
#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "tests/cli/classifiers.h"

namespace prism {
namespace {

TEST_F(ClassifierCommands, AnalyseBudgetsPrintsTablesAndLines) {
  const auto tables = prism({"analyse", "budgets", "budget", "--data", "data", "--difficulty", "uniform", "--rounds",
                             "1", "--figures", "figures"});
  ASSERT_EQ(tables.status, 0) << tables.err;
  for (const char* words : {"entropy of p", "how often each head is computed", "bright", "short", "hard",
                            "heads computed, k / H", "milliseconds per text", "figures"})
    EXPECT_NE(tables.out.find(words), std::string::npos) << words << " in " << tables.out;
  for (const char* name : {"budgets-share-all.svg", "budgets-entropy-class.svg", "budgets-share-difficulty.svg",
                           "budgets-heads-layer1.svg"})
    EXPECT_TRUE(std::filesystem::exists(folder() / "figures" / name)) << name;

  const auto json = prism({"analyse", "budgets", "budget", "--data", "data", "--no-timing", "--text", "The cold sea",
                           "--maps", "2", "--json"});
  ASSERT_EQ(json.status, 0) << json.err;
  std::map<std::string, int> kinds;
  const auto lines = lines_of(json);
  for (const auto& line : lines) ++kinds[line["kind"]];
  // Two layers: all, two classes and three lengths; two maps of each.
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"layer", 2 * (1 + 2 + 3)}, {"text", 2}, {"map", 2 * 2}}));
  const auto evaluated = lines_of(prism({"eval", "budget", "data", "--task", "classification", "--json"})).at(0);
  EXPECT_NEAR(lines[1]["share"].get<double>(), evaluated["head_share"][1].get<double>(), 1e-6);
  EXPECT_NEAR(lines[1]["kept_share"].get<double>(), evaluated["kept_share"][1].get<double>(), 1e-6);
  const auto& map = lines.back();
  EXPECT_EQ(map["weights"].size(), map["tokens"].size());
  EXPECT_EQ(map["weights"][0].size(), map["tokens"].size()) << "a token sees those after it";

  write_text(folder() / "budgets.jsonl", json.out);
  const auto report = run_prism({"report", "budget", "--analysis", "budgets.jsonl", "--out", "report.html"}, folder());
  EXPECT_EQ(report.status, 0) << report.err;
}

TEST_F(ClassifierCommands, AnalyseBudgetsSaysWhatIsCut) {
  const auto outcome = prism({"analyse", "budgets", "budget", "--text", std::string(500, 'x')});
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("note: 1 of 1 text is longer than the model's context, 16 tokens, and lost its end"),
            std::string::npos)
      << outcome.err;
}

TEST_F(ClassifierCommands, InfoFindsTheVocabularyOfLabelledData) {
  const auto outcome = run_prism({"info", "recipe.json", "--json"}, folder());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_EQ(nlohmann::json::parse(outcome.out)["vocab_size"], 275);
}

TEST_F(ClassifierCommands, AnalysesReadExamplesAndTexts) {
  for (const char* kind : {"entropy", "heads", "norms", "gradients"})
    for (const char* model : {"uniform", "budget"}) {
      const auto outcome = prism({"analyse", kind, model, "--data", "data", "--split", "test", "--json"});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const auto lines = lines_of(outcome);
      EXPECT_GE(lines.size(), 2u) << kind;
      EXPECT_EQ(lines[0]["reading"], "data (test), 16 examples");
    }
  const auto maps = prism({"analyse", "maps", "uniform", "--text", "The cold sea", "--heads", "0", "--json"});
  ASSERT_EQ(maps.status, 0) << maps.err;
  const auto lines = lines_of(maps);
  ASSERT_EQ(lines.size(), 2u);
  double sum = 0;
  for (const auto& weight : lines[0]["weights"][0]) sum += weight.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5) << "of all tokens, those after the first included";
  EXPECT_EQ(prism({"analyse", "capture", "uniform", "--text", "The cold sea", "--out", "captured"}).status, 0);
}

TEST_F(ClassifierCommands, AnalysesRefuseWrongInputWithASentence) {
  const auto budgets = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"analyse", "budgets"});
    return prism(words);
  };
  const auto analyse = [](std::vector<std::string> words) {
    words.insert(words.begin(), "analyse");
    return prism(words);
  };
  expect_sentence(analyse({"entropy", "uniform", "text.txt"}), 2, {"expected --text or --data", "file text.txt"});
  expect_sentence(analyse({"maps", "uniform", "text.txt", "--json"}), 2, {"expected --text for a classifier"});
  expect_sentence(analyse({"maps", "uniform", "--json"}), 2, {"FILE or --text; found none"});
  expect_sentence(analyse({"spectrum", "uniform", "text.txt"}), 2, {"prism analyse capture"});
  expect_sentence(analyse({"gradients", "uniform", "--text", "a"}), 2, {"expected --data"});
  expect_sentence(analyse({"entropy", "uniform", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  expect_sentence(analyse({"entropy", "uniform", "--data", "data", "--tokens", "4"}), 2,
                  {"--tokens applies to language models"});
  expect_sentence(analyse({"entropy", "uniform", "--data", "data", "--document-mask"}), 2,
                  {"--document-mask applies to language models"});
  expect_sentence(analyse({"attention-distance", "uniform", "--data", "data"}), 2,
                  {"expected a language model in uniform; found a classifier"});
  expect_sentence(budgets({"budget"}), 2, {"expected --data", "or --text"});
  expect_sentence(budgets({"uniform", "--data", "data"}), 2, {"expected a classifier with head budgets"});
  expect_sentence(budgets({"budget", "--data", "nowhere"}), 2, {"expected labelled examples in nowhere"});
  expect_sentence(budgets({"budget", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  for (const auto& option : std::vector<std::vector<std::string>>{{"--split", "test"},
                                                                  {"--examples", "3"},
                                                                  {"--batch", "3"},
                                                                  {"--rounds", "3"},
                                                                  {"--difficulty", "uniform"},
                                                                  {"--no-timing"}}) {
    std::vector<std::string> words = {"budget", "--text", "a"};
    words.insert(words.end(), option.begin(), option.end());
    expect_sentence(budgets(words), 2, {option[0], "--data"});
  }
  expect_sentence(budgets({"budget", "--data", "data", "--rounds", "3", "--no-timing"}), 2,
                  {"expected only one of", "--rounds", "--no-timing", "found both"});
  expect_sentence(budgets({"budget", "--data", "data", "--figures", "text.txt"}), 2, {"text.txt; found a file"});
  expect_sentence(budgets({"budget", "--data", "data", "--difficulty", "uniform", "--examples", "2"}), 2,
                  {"expected at least 3 examples", "--difficulty"});
  const auto late = budgets({"budget", "--data", "data", "--difficulty", "nowhere"});
  expect_sentence(late, 2, {"nowhere"});
  EXPECT_EQ(late.err.find("examples"), std::string::npos) << "nothing is labelled first: " << late.err;
  expect_sentence(budgets({"budget", "--data", "data", "--maps", "2", "--json"}), 2, {"--maps", "--text"});
  expect_sentence(budgets({"budget", "--text", "a", "--maps", "2"}), 2, {"expected --figures or --json with --maps"});
  expect_sentence(budgets({"budget", "--data", "data", "--batch", "0"}), 2, {"--batch: expected 1 to 65536 texts"});
  expect_sentence(budgets({"budget", "--data", "data", "--examples", "-1"}), 2, {"--examples: expected a number"});
}

}  // namespace
}  // namespace prism
