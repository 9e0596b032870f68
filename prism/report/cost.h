// What a loss costs: which groups no other beats in loss and rate at once, and when a group has what the baseline ends
// with.
//
//   for (const auto& point : cost_points(comparison)) if (point.on_front) ...
//   const Reach reach = reach_loss(comparison.groups[1], *target_loss(comparison));
#pragma once

#include <optional>
#include <vector>

#include "prism/report/compare.h"

namespace prism {

/// Tokens/s over the seeds of a group. Where any group was timed in turn with the baseline, only timings count: rates
/// that runs had by themselves, beside others and at other hours, cannot be compared with them.
Statistic training_rate(const Comparison& comparison, size_t group);

/// Where a group stands between a low loss and a high rate.
struct CostPoint {
  size_t group = 0;
  Statistic loss;          ///< final value of the figure
  Statistic tokens_per_s;  ///< in training
  bool on_front = false;   ///< no other group is at least as good and as fast, and better in one of them (Pareto)
};

/// The groups of final_losses() whose rate is known, the fastest last.
std::vector<CostPoint> cost_points(const Comparison& comparison);

/// The mean final validation loss of the baseline. Absent: it was not evaluated.
std::optional<double> target_loss(const Comparison& comparison);

/// When a run had done something.
struct RunMoment {
  double tokens = 0, seconds = 0;
};

/// When the curve, straight between its points, first is as good as `loss`: at its first point if it begins there.
/// Absent: it never is.
std::optional<RunMoment> first_reach(const std::vector<CurvePoint>& curve, double loss, const Figure& figure = {});

struct Reach {
  int64_t runs = 0;           ///< counted ones
  Statistic tokens, seconds;  ///< over the runs that reach the loss
};

Reach reach_loss(const RunGroup& group, double loss);

}  // namespace prism
