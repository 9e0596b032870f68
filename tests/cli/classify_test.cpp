// Trains a classifier and runs prism eval --task classification and prism classify as a user does.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/cli/commands.h"

namespace prism {
namespace {

/// Two runs on the same data: "uniform" and, with head budgets, "budget".
class ClassifierCommands : public testing::Test {
 protected:
  static std::filesystem::path folder() {
    static const TemporaryFolder made;
    static const bool is_ready = [] {
      const auto& path = made.path();
      std::string text, train, test;
      for (int i = 0; i < 40; ++i) text += "The keeper lit the bright lamp; the cold sea was dark.\n";
      for (int i = 0; i < 240; ++i) {
        const bool bright = i % 2 == 1;
        const std::string row = std::string(bright ? "bright" : "dark") + ",\"The " +
                                (bright ? "bright lamp " : "cold sea ") + std::to_string(i) + "\"\n";
        (i < 200 ? train : test) += row;
      }
      write_text(path / "text.txt", text);
      write_text(path / "train.csv", "kind,text\n" + train);
      write_text(path / "test.csv", "kind,text\n" + test);
      write_text(path / "recipe.json", R"({
        "model": {"d_model": 16, "context": 16, "classes": 2, "attention": "full", "schedule": "4x2", "ffn_width": 24},
        "data": {"folder": "data"},
        "train": {"epochs": 4, "batch_rows": 8, "learning_rate": 0.01, "dtype": "float32"}})");
      const auto must = [&](const std::vector<std::string>& words) {
        const auto outcome = run_prism(words, path);
        if (outcome.status != 0) throw std::runtime_error(outcome.err);
      };
      must({"tokenizer", "train", "text.txt", "--vocab-size", "275", "--out", "made"});
      must({"tokenize", "train.csv", "--label", "kind", "--test", "test.csv", "--valid-share", "0.1", "--tokenizer",
            "made", "--out", "data"});
      must({"train", "--recipe", "recipe.json", "--out", "uniform", "--threads", "1"});
      must({"train", "--recipe", "recipe.json", "--model.budget.kind", "learned", "--out", "budget", "--threads", "1"});
      return true;
    }();
    EXPECT_TRUE(is_ready);
    return made.path();
  }
  static Outcome prism(std::vector<std::string> words, const std::string& input = "") {
    words.insert(words.end(), {"--threads", "1"});
    return run_prism(words, folder(), input);
  }
};

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::vector<nlohmann::json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(nlohmann::json::parse(line));
  return lines;
}

TEST_F(ClassifierCommands, TrainPrintsExamplesAndAccuracy) {
  const auto outcome = run_prism({"train", "--recipe", "recipe.json", "--out", "again", "--json"}, folder());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["examples"].get<int>() % 8, 0);
  EXPECT_TRUE(json.contains("val_accuracy"));
  EXPECT_NE(outcome.err.find("examples/s"), std::string::npos) << outcome.err;
}

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
  const auto lines = lines_of(outcome.out);
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

TEST_F(ClassifierCommands, ClassifyLabelsLinesFilesAndTexts) {
  const auto lines = prism({"classify", "uniform", "-"}, "The bright lamp\nThe cold sea\n");
  ASSERT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(lines.out.find("bright  "), 0u) << lines.out;
  EXPECT_NE(lines.out.find("\ndark    "), std::string::npos) << lines.out;
  const auto file = prism({"classify", "budget", "test.csv", "--json", "--batch", "7"});
  ASSERT_EQ(file.status, 0) << file.err;
  const auto labelled = lines_of(file.out);
  ASSERT_EQ(labelled.size(), 40u);
  const auto evaluated =
      lines_of(prism({"eval", "budget", "data", "--task", "classification", "--json"}).out).at(0)["predicted"];
  for (size_t i = 0; i < labelled.size(); ++i) {
    EXPECT_EQ(labelled[i]["label"], evaluated[i] == 0 ? "bright" : "dark") << i;
    double sum = 0;
    for (const auto& probability : labelled[i]["probabilities"]) sum += probability.get<double>();
    EXPECT_NEAR(sum, 1, 1e-5);
    const auto k = std::max(1.0, std::floor(4 * labelled[i]["head_share"][0].get<double>()));
    EXPECT_EQ(labelled[i]["heads"][0].size(), static_cast<size_t>(k));
  }
  const auto text = prism({"classify", "budget", "--text", "The cold sea"});
  EXPECT_NE(text.out.find("  heads "), std::string::npos) << text.out;
}

TEST_F(ClassifierCommands, ClassifySaysWhatIsCut) {
  const auto outcome = prism({"classify", "uniform", "-"}, std::string(500, 'x') + "\nThe\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("note: 1 of 2 texts are longer than the model's context, 16 tokens"), std::string::npos)
      << outcome.err;
}

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
  const auto lines = lines_of(json.out);
  for (const auto& line : lines) ++kinds[line["kind"]];
  // Two layers: all, two classes and three lengths; two maps of each.
  EXPECT_EQ(kinds, (std::map<std::string, int>{{"layer", 2 * (1 + 2 + 3)}, {"text", 2}, {"map", 2 * 2}}));
  const auto evaluated = lines_of(prism({"eval", "budget", "data", "--task", "classification", "--json"}).out).at(0);
  EXPECT_NEAR(lines[1]["share"].get<double>(), evaluated["head_share"][1].get<double>(), 1e-6);
  EXPECT_NEAR(lines[1]["kept_share"].get<double>(), evaluated["kept_share"][1].get<double>(), 1e-6);
  const auto& map = lines.back();
  EXPECT_EQ(map["weights"].size(), map["tokens"].size());
  EXPECT_EQ(map["weights"][0].size(), map["tokens"].size()) << "a token sees those after it";

  write_text(folder() / "budgets.jsonl", json.out);
  const auto report = run_prism({"report", "budget", "--analysis", "budgets.jsonl", "--out", "report.html"}, folder());
  EXPECT_EQ(report.status, 0) << report.err;
}

TEST_F(ClassifierCommands, AnalysesReadExamplesAndTexts) {
  for (const char* kind : {"entropy", "heads", "norms", "gradients"})
    for (const char* model : {"uniform", "budget"}) {
      const auto outcome = prism({"analyse", kind, model, "--data", "data", "--split", "test", "--json"});
      ASSERT_EQ(outcome.status, 0) << outcome.err;
      const auto lines = lines_of(outcome.out);
      EXPECT_GE(lines.size(), 2u) << kind;
      EXPECT_EQ(lines[0]["reading"], "data (test), 16 examples");
    }
  const auto maps = prism({"analyse", "maps", "uniform", "--text", "The cold sea", "--heads", "0", "--json"});
  ASSERT_EQ(maps.status, 0) << maps.err;
  const auto lines = lines_of(maps.out);
  ASSERT_EQ(lines.size(), 2u);
  double sum = 0;
  for (const auto& weight : lines[0]["weights"][0]) sum += weight.get<double>();
  EXPECT_NEAR(sum, 1, 1e-5) << "of all tokens, those after the first included";
  EXPECT_EQ(prism({"analyse", "capture", "uniform", "--text", "The cold sea", "--out", "captured"}).status, 0);
}

TEST_F(ClassifierCommands, WithWrongInputGetASentence) {
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
  expect_sentence(evaluate({"uniform", "data", "--batch", "0"}), 2, {"batch: expected 1 to 65536 texts"});
  expect_sentence(evaluate({"data", "data"}), 2, {"expected a model folder"});
  expect_sentence(prism({"eval", "uniform", "text.txt"}), 2, {"expected a language model", "--task classification"});
  expect_sentence(prism({"eval", "uniform", "text.txt", "--split", "test"}), 2,
                  {"--split", "belongs to classification"});
  expect_sentence(prism({"generate", "uniform", "x"}), 2, {"expected a language model"});

  const auto budgets = [](std::vector<std::string> words) {
    words.insert(words.begin(), {"analyse", "budgets"});
    return prism(words);
  };
  expect_sentence(prism({"analyse", "entropy", "uniform", "text.txt"}), 2, {"expected --text or --data", "FILE"});
  expect_sentence(prism({"analyse", "gradients", "uniform", "--text", "a"}), 2, {"expected --data"});
  expect_sentence(prism({"analyse", "entropy", "uniform", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  expect_sentence(prism({"analyse", "entropy", "uniform", "--data", "data", "--tokens", "4"}), 2, {"--tokens"});
  expect_sentence(budgets({"budget"}), 2, {"expected --data", "or --text"});
  expect_sentence(budgets({"uniform", "--data", "data"}), 2, {"expected a classifier with head budgets"});
  expect_sentence(budgets({"budget", "--data", "nowhere"}), 2, {"expected labelled examples in nowhere"});
  expect_sentence(budgets({"budget", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  expect_sentence(budgets({"budget", "--text", "a", "--difficulty", "uniform"}), 2,
                  {"expected --data for --difficulty"});
  expect_sentence(budgets({"budget", "--data", "data", "--batch", "0"}), 2, {"batch: expected 1 to 65536 texts"});
  expect_sentence(budgets({"budget", "--data", "data", "--examples", "-1"}), 2, {"examples: expected a number"});

  expect_sentence(prism({"classify", "uniform"}), 2, {"neither FILE nor --text"});
  expect_sentence(prism({"classify", "uniform", "-"}, "The\n\n"), 2, {"line 2: expected a text"});
  expect_sentence(prism({"classify", "uniform", "-"}, ""), 2, {"expected at least one text"});
  expect_sentence(prism({"classify", "uniform", "--text", " "}), 2, {"expected a text"});
  expect_sentence(prism({"classify", "uniform", "--text", "\xff"}), 2, {"expected UTF-8"});
  expect_sentence(prism({"classify", "uniform", "--text", "x", "--format", "csv"}), 2, {"--text excludes --format"});
  expect_sentence(prism({"classify", "uniform", "none.txt"}), 2, {"none.txt"});
  expect_sentence(prism({"classify", "uniform", "text.txt", "--text-fields", "text"}), 2, {"--text-fields only with"});
  expect_sentence(prism({"classify", "uniform", "test.csv", "--text-fields", "kind,text"}), 2, {"texts of 1 field"});
  expect_sentence(prism({"classify", "uniform", "test.csv", "--text-fields", "body"}), 2, {"column \"body\""});
  expect_sentence(prism({"classify", "uniform", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  expect_sentence(prism({"classify", "uniform", "-"}, "\xff\xfe\n"), 2, {"expected UTF-8"});

  expect_sentence(run_prism({"train", "--recipe", "recipe.json", "--train.tokens", "5", "--out", "x"}, folder()), 2,
                  {"expected train.epochs"});
  expect_sentence(run_prism({"train", "--recipe", "recipe.json", "--model.classes", "3", "--out", "x"}, folder()), 2,
                  {"expected model.classes 2"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "x"));
}

}  // namespace
}  // namespace prism
