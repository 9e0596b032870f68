#include "prism/bench/sweep_timing.h"

#include "prism/bench/training.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

std::string bench_dtype(const Recipe& recipe) {
  return compute_type_name(find_compute_type(recipe.train.dtype));
}

}  // namespace

std::vector<std::pair<std::string, RunTiming>> time_arms(const Sweep& sweep, const ArmTimingOptions& options) {
  const auto& baseline = sweep.arms[0];
  TrainingBench bench{.peer = {baseline.name, training_case_of(baseline.recipe), bench_dtype(baseline.recipe)},
                      .steps = options.steps,
                      .threads = options.threads};
  Progress progress("timing", static_cast<int64_t>(sweep.arms.size()), " arms");
  std::vector<double> baseline_rates;
  std::vector<std::pair<std::string, RunTiming>> timings;
  for (const auto& arm : sweep.arms) {
    if (stop_signal() != 0) break;
    progress.update(static_cast<int64_t>(timings.size()), arm.name);
    bench.dtype = bench_dtype(arm.recipe);
    CoreWait wait;
    const auto row = bench_training(training_case_of(arm.recipe), bench);
    baseline_rates.push_back(row.tokens_per_s / row.ratio);
    timings.emplace_back(arm.name, RunTiming{.baseline = baseline.name,
                                             .ratio = row.ratio,
                                             .steps = options.steps,
                                             .threads = options.threads,
                                             .cpu = cpu_name(),
                                             .wait_share = wait.share()});
  }
  progress.finish(fmt::format("timing: {} arms", timings.size()));
  for (auto& [name, timing] : timings) timing.tokens_per_s = median(baseline_rates) * timing.ratio;
  return timings;
}

}  // namespace prism
