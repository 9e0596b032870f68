// Runs prism bench model on classifiers as a user does.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/cli/classifiers.h"

namespace prism {
namespace {

TEST_F(ClassifierCommands, BenchTimesBatchesOfTexts) {
  for (const auto* model : {"uniform", "budget"}) {
    const auto rows = lines_of(prism(
        {"bench", "model", model, "--prompt-tokens", "4", "8", "--sequences", "1", "3", "--rounds", "1", "--json"}));
    const char* names[] = {"text4", "text4x3", "text8", "text8x3"};
    ASSERT_EQ(rows.size(), std::size(names));
    for (size_t i = 0; i < rows.size(); ++i) {
      EXPECT_EQ(rows[i]["name"], names[i]);
      const double tokens = rows[i]["sequences"].get<double>() * rows[i]["tokens"].get<double>();
      EXPECT_NEAR(rows[i]["tokens_per_s"].get<double>(), tokens / rows[i]["ms"].get<double>() * 1e3,
                  1e-6 * rows[i]["tokens_per_s"].get<double>());
      EXPECT_GT(rows[i]["limit_share"].get<double>(), 0);
    }
    EXPECT_EQ(rows[1]["work"].get<double>(), 3 * rows[0]["work"].get<double>());
    EXPECT_GT(rows[2]["work"].get<double>(), 2 * rows[0]["work"].get<double>()) << "each token sees more keys";
  }
}

TEST_F(ClassifierCommands, BenchReadsWholeContextsUnlessToldOtherwise) {
  const auto outcome = prism({"bench", "model", "uniform", "--rounds", "1"});
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("\ntext16x32 "), std::string::npos) << outcome.out;
  EXPECT_EQ(lines_of(prism({"bench", "model", "uniform", "--rounds", "1", "--weights", "float32", "--dtype", "float32",
                            "--sequences", "1", "--json"}))
                .at(0)["name"],
            "text16");
}

TEST_F(ClassifierCommands, BenchRefusesWhatOnlyLanguageModelsDo) {
  const std::vector<std::vector<std::string>> given = {{"--new-tokens", "0"},      {"--depth", "4"},
                                                       {"--prefill-set", "p=0.9"}, {"--cache-type", "int8"},
                                                       {"--prefill-chunk", "8"},   {"--prefill", "spectral"}};
  for (const auto& words : given) {
    std::vector<std::string> command = {"bench", "model", "uniform"};
    command.insert(command.end(), words.begin(), words.end());
    expect_sentence(prism(std::move(command)), 2, {"expected a language model with " + words[0], "found a classifier"});
  }
  expect_sentence(prism({"bench", "model", "uniform", "--prompt-tokens", "4", "17"}), 2,
                  {"1 to 16 tokens, the model's context", "found 17"});
  expect_sentence(prism({"bench", "model", "uniform", "--prompt-tokens", "0"}), 2, {"found 0"});
  expect_sentence(prism({"bench", "model", "uniform", "--sequences", "0"}), 2, {"--sequences", "texts in a batch"});
  expect_sentence(prism({"bench", "model", "uniform", "--sequences", "1000000000"}), 2, {"--sequences", "1000000000"});
}

}  // namespace
}  // namespace prism
