// Shared by the tests of prism analyse: short runs.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "tests/cli/commands.h"

namespace prism {

/// Trains a short run of the recipe with some fields changed. Each name is trained once.
inline std::string run_with(const std::string& name, const std::vector<std::string>& words) {
  static std::map<std::string, Outcome> made;
  if (!made.contains(name)) {
    std::vector<std::string> all = {"train",     "--recipe", "recipe.json",    "--out", name,
                                    "--threads", "1",        "--train.tokens", "256",   "--train.warmup_share",
                                    "0"};
    all.insert(all.end(), words.begin(), words.end());
    made[name] = run(all);
  }
  if (made[name].status != 0) throw std::runtime_error(made[name].err);
  return name;
}

inline std::string prism_seed(const std::string& seed) {
  return run_with("rising-" + seed, {"--seed", seed});
}

inline std::string uniform_seed(const std::string& seed) {
  return run_with("uniform-" + seed, {"--seed", seed, "--model.schedule", "2x2"});
}

/// Runs one of the analyses.
inline Outcome analyse(std::vector<std::string> words) {
  words.insert(words.begin(), "analyse");
  words.insert(words.end(), {"--threads", "1"});
  return run(words);
}

}  // namespace prism
