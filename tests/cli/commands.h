// Shared by the tests of commands: a finished run, and a check of error messages.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cli/process.h"
#include "tests/core/message_of.h"

namespace prism {

inline Outcome run(const std::vector<std::string>& words, const std::string& input = "") {
  return run_prism(words, Workshop::folder(), input);
}

/// The folder of a finished run, which is trained once.
inline const std::string& trained() {
  static const std::string name = [] {
    const auto outcome = run({"train", "--recipe", "recipe.json", "--out", "trained", "--threads", "1"});
    if (outcome.status != 0) throw std::runtime_error(outcome.err);
    return std::string("trained");
  }();
  return name;
}

inline std::filesystem::path last_checkpoint() {
  return Workshop::folder() / trained() / "checkpoints/step-00000016";
}

/// Expects an error of the form "[operation] ..." with all `parts` in it, and no stack trace.
inline void expect_sentence(const Outcome& outcome, int status, const std::vector<std::string>& parts) {
  EXPECT_EQ(outcome.status, status) << outcome.err;
  EXPECT_TRUE(outcome.err.find('[') != std::string::npos) << outcome.err;
  EXPECT_EQ(outcome.err.find("frame #"), std::string::npos) << outcome.err;
  if (status == 2) {
    EXPECT_TRUE(has_way_out(outcome.err)) << "no way out: " << outcome.err;
  }
  for (const auto& part : parts)
    EXPECT_NE(outcome.err.find(part), std::string::npos) << "no \"" << part << "\" in: " << outcome.err;
}

}  // namespace prism
