#include "prism/bench/sweep_timing.h"

#include <map>

#include "prism/bench/training.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

std::string bench_dtype(const Recipe& recipe) {
  return find_compute_type(recipe.train.dtype) == torch::kBFloat16 ? "bf16" : "f32";
}

}  // namespace

std::vector<std::pair<std::string, RunTiming>> time_arms(const Sweep& sweep, const ArmTimingOptions& options) {
  const auto& baseline = sweep.arms[0];
  TrainingBench bench{.dtype = bench_dtype(baseline.recipe),
                      .peer = {baseline.name, training_case_of(baseline.recipe), bench_dtype(baseline.recipe)},
                      .steps = options.steps,
                      .threads = options.threads};
  Progress progress("timing", static_cast<int64_t>(sweep.arms.size()), " arms");
  std::vector<double> baseline_rates;
  std::map<std::string, double> ratios;
  for (const auto& arm : sweep.arms) {
    if (stop_signal() != 0) break;
    progress.update(static_cast<int64_t>(ratios.size()), arm.name);
    const auto measured = training_case_of(arm.recipe);
    bench.dtype = bench_dtype(arm.recipe);
    const auto row = bench_training(measured, bench);
    ratios[arm.name] = row.ratio;
    baseline_rates.push_back(row.tokens_per_s / row.ratio);
  }
  progress.finish(fmt::format("timing: {} arms", ratios.size()));
  std::vector<std::pair<std::string, RunTiming>> timings;
  if (baseline_rates.empty()) return timings;
  const double rate = median(baseline_rates);
  for (const auto& arm : sweep.arms) {
    const auto found = ratios.find(arm.name);
    if (found == ratios.end()) continue;
    timings.emplace_back(arm.name, RunTiming{.baseline = baseline.name,
                                             .tokens_per_s = rate * found->second,
                                             .ratio = found->second,
                                             .steps = options.steps,
                                             .threads = options.threads,
                                             .cpu = cpu_name()});
  }
  return timings;
}

}  // namespace prism
