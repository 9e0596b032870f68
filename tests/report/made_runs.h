// Runs made up for tests, without a folder.
//
//   const Comparison two = compare_groups({{"base", {4.0, 4.1}}, {"prism", {3.9, 4.0}}});    // seeds 1 and 2 of each
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prism/report/compare.h"

namespace prism {

inline Run make_run(const std::string& name, int64_t seed, std::vector<CurvePoint> valid, bool finished = true) {
  Run run;
  run.folder = "runs/" + name + "_s" + std::to_string(seed);
  run.name = name;
  run.seed = seed;
  run.tokens = valid.empty() ? 0 : valid.back().tokens;
  run.valid = std::move(valid);
  run.finished = finished;
  return run;
}

/// Seeds 1, 2, ... of one experiment, whose validation loss falls from 5 after 1000 tokens to these after 3000.
inline std::vector<Run> runs_ending_at(const std::string& name, const std::vector<double>& losses) {
  std::vector<Run> runs;
  for (size_t i = 0; i < losses.size(); ++i) {
    runs.push_back(make_run(name, static_cast<int64_t>(i) + 1, {{1000, 5.0}, {3000, losses[i]}}));
  }
  return runs;
}

/// Names with the last losses of their seeds; the first is the baseline.
inline Comparison compare_groups(const std::vector<std::pair<std::string, std::vector<double>>>& groups) {
  std::vector<Run> runs;
  for (const auto& [name, losses] : groups) {
    for (Run& run : runs_ending_at(name, losses)) runs.push_back(std::move(run));
  }
  return compare_runs(std::move(runs));
}

}  // namespace prism
