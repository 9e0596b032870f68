// Compares runs: groups the seeds of each experiment, and computes means, sample standard deviations, and differences
// at equal numbers of tokens or examples, paired by seed.
//
//   const Comparison comparison = compare_runs(std::move(runs));
//   const auto gap = final_difference(comparison.groups[1], comparison.groups[0]);
//   if (gap && gap->loss.interval.excludes(0)) fmt::print("{:+.4f}\n", gap->loss.difference.mean);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/report/compare/run.h"

namespace prism {

/// Runs that differ only in the seed.
struct RunGroup {
  std::string label;  ///< unique among the groups
  std::vector<Run> runs;
};

/// Groups runs that agree in name, model, length and recipe and differ in seed, in order of first appearance. Runs with
/// the same name that cannot be grouped (equal seeds, other recipes) form separate groups, labelled with their folders;
/// `remarks` receives the reason.
std::vector<RunGroup> group_runs(std::vector<Run> runs, std::vector<std::string>* remarks);

/// The data of a report.
struct Comparison {
  std::vector<RunGroup> groups;              ///< at least one
  size_t baseline = 0;                       ///< index of the group that the others are compared with
  Metric metric;                             ///< the quantity that validation measured
  TrainingUnit unit = TrainingUnit::tokens;  ///< what training counts
  /// "tokens" or "examples".
  const char* counted() const { return noun_of(unit); }
  const char* loss_unit() const { return unit == TrainingUnit::tokens ? "nats per token" : "nats per example"; }
  std::vector<std::string> remarks;  ///< sentences about irregularities
};

/// Groups the runs and finds the baseline. @throws InputError for no runs, for runs with different tokenizers,
/// validation texts or metrics, and for an unknown baseline, like find_group().
Comparison compare_runs(std::vector<Run> runs, const std::string& baseline = "");

/// Index of the group called `name`, which is a label, or the name or folder of a run. An empty name is the first
/// group.
/// @throws InputError naming the existing groups.
size_t find_group(const std::vector<RunGroup>& groups, const std::string& name);

/// The groups' labels, in order.
std::vector<std::string> labels_of(const std::vector<RunGroup>& groups);

/// Returns true if a recipe's field is a seed, in which the runs of one group may differ.
bool names_seed(const std::string& path);

/// Returns true if a group has more than one run, so that standard deviations exist.
bool has_seeds(const Comparison& comparison);

/// The runs that represent the group: the finished ones; if there are none, those that were evaluated; else all.
std::vector<const Run*> counted_runs(const RunGroup& group);

/// Statistic of a field over the runs that have it.
template <class Number>
Statistic statistic_over(const std::vector<const Run*>& runs, std::optional<Number> Run::*field) {
  std::vector<double> values;
  for (const Run* run : runs) {
    if (run->*field) values.push_back(static_cast<double>(*(run->*field)));
  }
  return statistic(values);
}

struct CurveStatistic {
  int64_t trained = 0;
  Statistic loss;
};

/// Mean and deviation over curves, at every length of training where all of them have a point.
/// @param curves  `trained` strictly increasing in each.
std::vector<CurveStatistic> curve_statistics(const std::vector<const std::vector<CurvePoint>*>& curves);

/// The validation loss over the counted runs, at every length of training where all of them were evaluated.
std::vector<CurveStatistic> validation_curve(const RunGroup& group);

/// The result of one run, with the seed that pairs it with a run of another group.
struct SeedValue {
  std::optional<int64_t> seed;
  double value = 0;
};

Statistic statistic_of(const std::vector<SeedValue>& values);

/// Difference between a group and the baseline in one quantity.
///
/// Runs of the same seed see the same data in the same order, so their difference varies less than either of them.
/// `difference` is therefore the statistic of these differences. If the groups share no seed, it is the difference of
/// the means, with deviation sqrt(deviation_a^2 + deviation_b^2).
struct PairedDifference {
  std::vector<SeedValue> seeds;  ///< group minus baseline for each shared seed, ascending; empty if not paired
  Statistic difference;          ///< count 0 if one of the groups has no value
  Interval interval;             ///< 95%, Student's t; from minus to plus infinity for fewer than two pairs

  bool paired() const { return !seeds.empty(); }
  bool has_interval() const { return seeds.size() > 1; }
};

/// `group` minus `baseline`. @param group, baseline  each seed at most once.
PairedDifference paired_difference(const std::vector<SeedValue>& group, const std::vector<SeedValue>& baseline);

struct DifferencePoint {
  int64_t trained = 0;
  PairedDifference loss;
};

struct LossDifference {
  std::vector<DifferencePoint> points;
  bool interpolated = false;  ///< true if evaluations at different tokens were interpolated linearly
};

/// Validation loss of `group` minus that of `baseline` at equal numbers of tokens. Negative: better than the baseline.
///
/// Compares the counted runs whose seeds are in both groups, or all of them if no seed is shared. If at least half of
/// one side's evaluations are at token counts of the other, exactly these points are compared; else both sides are
/// interpolated within the range they share.
LossDifference loss_difference(const RunGroup& group, const RunGroup& baseline);

/// The last point of loss_difference(), which reports show as the difference; std::nullopt if nothing can be compared.
std::optional<DifferencePoint> final_difference(const RunGroup& group, const RunGroup& baseline);

/// The curve's mean over a centred window of about a twentieth of its points. The window shrinks towards the ends, so
/// that the smoothed curve does not lag.
std::vector<CurvePoint> smooth_curve(const std::vector<CurvePoint>& curve);

}  // namespace prism
