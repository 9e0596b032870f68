// How fast the arms of a sweep train, measured when nothing else runs: each one's steps in turn with the baseline's.
//
//   for (const auto& [arm, timing] : time_arms(sweep, {.steps = 8, .threads = 2})) ...
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prism/report/run.h"
#include "prism/training/sweep.h"

namespace prism {

struct ArmTimingOptions {
  int64_t steps = 8;  ///< of each arm that count
  int threads = 1;
};

/// The timing of each arm, in the order of the sweep, by name.
///
/// An arm's ratio is that of medians of steps that took turns with the baseline's (bench_training()); its rate is that
/// ratio times the baseline's rate, the median over all its turns. So what else the machine does changes both alike;
/// the baseline's own ratio, to itself, shows what is left of it. Stops at a signal: arms that were not measured by
/// then are left out.
std::vector<std::pair<std::string, RunTiming>> time_arms(const Sweep& sweep, const ArmTimingOptions& options);

}  // namespace prism
