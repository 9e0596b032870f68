// Times the training steps of a sweep's arms when nothing else runs, each arm in turn with the baseline.
//
//   for (const auto& [arm, timing] : time_arms(sweep, {.steps = 8, .threads = 2})) ...
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "prism/report/compare/run.h"
#include "prism/training/sweep/sweep.h"

namespace prism {

struct ArmTimingOptions {
  int64_t steps = 8;  ///< counted steps of each arm
  int threads = 1;
};

/// The timing of each arm by name, in the order of the sweep.
///
/// An arm's ratio compares the median speed of its steps with the baseline's, whose steps take turns with it
/// (bench_training()). Its rate is that ratio times the baseline's rate, the median over all comparisons. Other work on
/// the machine thus affects both alike. The baseline is also timed against itself, which shows the remaining noise.
/// Stops at a signal; arms not measured by then are left out.
std::vector<std::pair<std::string, RunTiming>> time_arms(const Sweep& sweep, const ArmTimingOptions& options);

}  // namespace prism
