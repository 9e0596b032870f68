// Trains classifiers and runs prism classify as a user does.
#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <cmath>
#include <string>
#include <thread>

#include "tests/cli/classifiers.h"

namespace prism {
namespace {

TEST_F(ClassifierCommands, TrainPrintsExamplesAndAccuracy) {
  const auto outcome = run_prism({"train", "--recipe", "recipe.json", "--out", "again", "--json"}, folder());
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["examples"].get<int>() % 8, 0);
  EXPECT_TRUE(json.contains("val_accuracy"));
  EXPECT_NE(outcome.err.find("examples/s"), std::string::npos) << outcome.err;
}

TEST_F(ClassifierCommands, ClassifyLabelsLinesFilesAndTexts) {
  const auto lines = prism({"classify", "uniform", "-"}, "The bright lamp\nThe cold sea\n");
  ASSERT_EQ(lines.status, 0) << lines.err;
  EXPECT_EQ(lines.out.find("bright  "), 0u) << lines.out;
  EXPECT_NE(lines.out.find("\ndark    "), std::string::npos) << lines.out;
  const auto file = prism({"classify", "budget", "test.csv", "--json", "--batch", "7"});
  ASSERT_EQ(file.status, 0) << file.err;
  const auto labelled = lines_of(file);
  ASSERT_EQ(labelled.size(), 40u);
  const auto evaluated =
      lines_of(prism({"eval", "budget", "data", "--task", "classification", "--json"})).at(0)["predicted"];
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

TEST_F(ClassifierCommands, ClassifyHoldsNoLineOfAPipeBack) {
  int ends[2];
  ASSERT_EQ(::pipe(ends), 0);
  const pid_t child = start_prism({"classify", "uniform", "-", "--threads", "1"}, folder(), [&] {
    ::dup2(ends[0], STDIN_FILENO);
    ::close(ends[1]);
  });
  EXPECT_EQ(::write(ends[1], "x\n", 2), 2);  // shorter than the signature of any packing
  const auto printed = [] { return !read_text(folder() / "stdout.txt").empty(); };
  for (int i = 0; i < 600 && !printed(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT_TRUE(printed());
  for (const int end : ends) ::close(end);
  EXPECT_EQ(wait_for(child, folder()).status, 0);
}

TEST_F(ClassifierCommands, ClassifySaysWhatIsCut) {
  const auto outcome = prism({"classify", "uniform", "-"}, std::string(500, 'x') + "\nThe\n");
  EXPECT_EQ(outcome.status, 0);
  EXPECT_NE(outcome.err.find("note: 1 of 2 texts is longer than the model's context, 16 tokens"), std::string::npos)
      << outcome.err;
}

TEST_F(ClassifierCommands, TrainingAndUseRefuseWrongInputWithASentence) {
  expect_sentence(prism({"generate", "uniform", "x"}), 2, {"expected a language model"});
  expect_sentence(prism({"classify", "uniform"}), 2, {"neither FILE nor --text"});
  expect_sentence(prism({"classify", "uniform", "-"}, "The\n\n"), 2, {"line 2: expected a text"});
  expect_sentence(prism({"classify", "uniform", "-"}, ""), 2, {"expected at least one text"});
  expect_sentence(prism({"classify", "uniform", "--text", " "}), 2, {"expected a text"});
  expect_sentence(prism({"classify", "uniform", "--text", "\xff"}), 2, {"expected text in UTF-8; found byte 0xFF"});
  expect_sentence(prism({"classify", "uniform", "--text", "x", "--format", "csv"}), 2,
                  {"expected only one of --text and --format; found both"});
  expect_sentence(prism({"classify", "uniform", "none.txt"}), 2, {"none.txt"});
  expect_sentence(prism({"classify", "uniform", "text.txt", "--text-fields", "text"}), 2, {"--text-fields only with"});
  expect_sentence(prism({"classify", "uniform", "test.csv", "--text-fields", "kind,text"}), 2, {"texts of 1 field"});
  expect_sentence(prism({"classify", "uniform", "test.csv", "--text-fields", "body"}), 2, {"column \"body\""});
  expect_sentence(prism({"classify", "uniform", "--text", "a", "--text", "b"}), 2, {"expected 1 --text"});
  std::filesystem::copy(folder() / "uniform", folder() / "nameless", std::filesystem::copy_options::recursive);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder() / "nameless"))
    if (entry.path().filename() == "classes.json") std::filesystem::remove(entry.path());
  expect_sentence(prism({"classify", "nameless", "--text", "a", "--text", "b"}), 2,
                  {"expected one --text, because the model's folder", "found 2; put the words in one."});
  expect_sentence(prism({"classify", "uniform", "--text", ""}), 2, {"--text: expected a text; found only blanks"});
  expect_sentence(prism({"classify", "uniform", "."}), 2, {"expected a file of texts; found the folder ."});
  expect_sentence(prism({"classify", "uniform", "-"}, "\xff\xfe\n"), 2, {"expected UTF-8"});

  expect_sentence(run_prism({"train", "--recipe", "recipe.json", "--train.tokens", "5", "--out", "x"}, folder()), 2,
                  {"expected train.epochs"});
  expect_sentence(run_prism({"train", "--recipe", "recipe.json", "--model.classes", "3", "--out", "x"}, folder()), 2,
                  {"expected model.classes 2"});
  EXPECT_FALSE(std::filesystem::exists(folder() / "x"));
}

}  // namespace
}  // namespace prism
