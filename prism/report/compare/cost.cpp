#include "prism/report/compare/cost.h"

#include <algorithm>

#include "prism/report/compare/verdict.h"

namespace prism {
namespace {

bool beats(const Metric& metric, const CostPoint& a, const CostPoint& b) {
  const bool as_good = !metric.is_better(b.loss.mean, a.loss.mean) && a.rate.mean >= b.rate.mean;
  return as_good && (metric.is_better(a.loss.mean, b.loss.mean) || a.rate.mean > b.rate.mean);
}

}  // namespace

Statistic training_rate(const Comparison& comparison, size_t group) {
  const auto is_timed = [](const Run& run) { return run.timing.has_value(); };
  const bool timed = std::any_of(comparison.groups.begin(), comparison.groups.end(), [&](const RunGroup& other) {
    return std::any_of(other.runs.begin(), other.runs.end(), is_timed);
  });
  auto runs = counted_runs(comparison.groups[group]);
  if (timed) std::erase_if(runs, [&](const Run* run) { return !is_timed(*run); });
  return statistic_over(runs, &Run::rate);
}

std::vector<CostPoint> cost_points(const Comparison& comparison) {
  std::vector<CostPoint> points;
  for (const auto& [group, loss] : final_losses(comparison).groups) {
    const Statistic rate = training_rate(comparison, group);
    if (rate.count > 0) points.push_back({group, loss, rate});
  }
  for (auto& point : points) {
    point.on_front = std::none_of(points.begin(), points.end(),
                                  [&](const CostPoint& other) { return beats(comparison.metric, other, point); });
  }
  std::stable_sort(points.begin(), points.end(),
                   [](const CostPoint& a, const CostPoint& b) { return a.rate.mean < b.rate.mean; });
  return points;
}

std::optional<double> target_loss(const Comparison& comparison) {
  const auto curve = validation_curve(comparison.groups[comparison.baseline]);
  return curve.empty() ? std::nullopt : std::optional(curve.back().loss.mean);
}

std::optional<RunMoment> first_reach(const std::vector<CurvePoint>& curve, double loss, const Metric& metric) {
  const auto next = std::find_if(curve.begin(), curve.end(),
                                 [&](const CurvePoint& point) { return !metric.is_better(loss, point.loss); });
  if (next == curve.end()) return std::nullopt;
  const double trained = static_cast<double>(next->trained);
  if (next == curve.begin()) return RunMoment{trained, next->seconds};
  const CurvePoint& before = *std::prev(next);
  const double left = (loss - next->loss) / (before.loss - next->loss);  // fraction of the way from `next` to `before`
  return RunMoment{trained - left * static_cast<double>(next->trained - before.trained),
                   next->seconds - left * (next->seconds - before.seconds)};
}

Reach reach_loss(const RunGroup& group, double loss) {
  std::vector<double> trained, seconds;
  const auto runs = counted_runs(group);
  for (const Run* run : runs) {
    const auto moment = first_reach(run->valid, loss, run->metric);
    if (!moment) continue;
    trained.push_back(moment->trained);
    seconds.push_back(moment->seconds);
  }
  return {static_cast<int64_t>(runs.size()), statistic(trained), statistic(seconds)};
}

}  // namespace prism
