// Two trained classifiers for tests of commands.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cli/commands.h"

namespace prism {

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

}  // namespace prism
