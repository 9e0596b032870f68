// Runs for tests, created in memory.
//
//   const Comparison two = compare_groups({{"base", {4.0, 4.1}}, {"prism", {3.9, 4.0}}});    // seeds 1 and 2 of each
#pragma once

#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "prism/report/compare/compare.h"

namespace prism {

inline Run make_run(const std::string& name, int64_t seed, std::vector<CurvePoint> valid, bool finished = true) {
  Run run;
  run.folder = "runs/" + name + "_s" + std::to_string(seed);
  run.name = name;
  run.seed = seed;
  run.trained = valid.empty() ? 0 : valid.back().trained;
  run.valid = std::move(valid);
  run.finished = finished;
  return run;
}

/// Seeds 1, 2, ... of one experiment. Validation loss falls from 5 after 1000 tokens to the given values after 3000.
inline std::vector<Run> runs_ending_at(const std::string& name, const std::vector<double>& losses) {
  std::vector<Run> runs;
  for (size_t i = 0; i < losses.size(); ++i) {
    runs.push_back(make_run(name, static_cast<int64_t>(i) + 1, {{1000, 5.0}, {3000, losses[i]}}));
  }
  return runs;
}

/// Group names with the final losses of their seeds; the first is the baseline.
inline Comparison compare_groups(const std::vector<std::pair<std::string, std::vector<double>>>& groups) {
  std::vector<Run> runs;
  for (const auto& [name, losses] : groups) {
    for (Run& run : runs_ending_at(name, losses)) runs.push_back(std::move(run));
  }
  return compare_runs(std::move(runs));
}

/// The seeds' attention distances: for each layer, heads and distance.
inline Run with_distances(Run run, const std::vector<std::pair<int64_t, double>>& layers) {
  for (size_t i = 0; i < layers.size(); ++i) {
    auto& layer = run.distances.emplace_back();
    layer.layer = static_cast<int64_t>(i);
    std::tie(layer.heads, layer.distance) = layers[i];
  }
  return run;
}

/// Two measured seeds each of a uniform and a progressive model with three layers. The first two layers have different
/// numbers of heads.
inline Comparison measured_runs() {
  const auto run = [](const std::string& name, int64_t seed, const std::vector<std::pair<int64_t, double>>& layers,
                      double nats) {
    Run result = with_distances(make_run(name, seed, {{1000, 4.0}}), layers);
    result.text_losses = {{"a text", nats, 100, {}, {}}};
    return result;
  };
  return compare_runs({run("uniform", 1, {{4, 10.0}, {4, 20.0}, {4, 30.0}}, 400),
                       run("uniform", 2, {{4, 12.0}, {4, 24.0}, {4, 30.0}}, 410),
                       run("prism", 1, {{1, 15.0}, {2, 20.0}, {4, 31.0}}, 390),
                       run("prism", 2, {{1, 18.0}, {2, 26.0}, {4, 29.0}}, 402)});
}

}  // namespace prism
