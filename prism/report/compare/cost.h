// Loss against cost: which groups are on the Pareto front of loss and rate, and when a group reaches the baseline's
// final loss.
//
//   for (const auto& point : cost_points(comparison)) if (point.on_front) ...
//   const Reach reach = reach_loss(comparison.groups[1], *target_loss(comparison));
#pragma once

#include <optional>
#include <vector>

#include "prism/report/compare/compare.h"

namespace prism {

/// Tokens or examples per second over the seeds of a group. If any group was timed alternately with the baseline, only
/// timings count: the rates of training runs, measured beside other programs and at other times, cannot be compared
/// with them.
Statistic training_rate(const Comparison& comparison, size_t group);

/// A group's position in the plane of loss and rate.
struct CostPoint {
  size_t group = 0;
  Statistic loss;         ///< final value of the metric
  Statistic rate;         ///< in training
  bool on_front = false;  ///< no other group is at least as good and as fast, and better in one of the two (Pareto)
};

/// The groups of final_losses() with a known rate, in order of increasing rate.
std::vector<CostPoint> cost_points(const Comparison& comparison);

/// The mean final validation loss of the baseline; std::nullopt if it was not evaluated.
std::optional<double> target_loss(const Comparison& comparison);

/// The tokens or examples, and the seconds, at which a run reached a value.
struct RunMoment {
  double trained = 0, seconds = 0;
};

/// The first time at which the curve, interpolated linearly, is as good as `loss`: its first point if it begins there.
/// std::nullopt if it never is.
std::optional<RunMoment> first_reach(const std::vector<CurvePoint>& curve, double loss, const Metric& metric = {});

struct Reach {
  int64_t runs = 0;            ///< number of counted runs
  Statistic trained, seconds;  ///< over the runs that reach the loss
};

Reach reach_loss(const RunGroup& group, double loss);

}  // namespace prism
