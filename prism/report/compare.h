// Runs side by side: seeds of one experiment gathered, means and sample standard deviations, differences at equal
// tokens and seed by seed.
//
//   const Comparison comparison = compare_runs(std::move(runs));
//   const auto gap = final_difference(comparison.groups[1], comparison.groups[0]);
//   if (gap && gap->loss.interval.excludes(0)) fmt::print("{:+.4f}\n", gap->loss.difference.mean);
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/report/run.h"

namespace prism {

/// Runs that differ in nothing but the seed.
struct RunGroup {
  std::string label;  ///< unique among the groups
  std::vector<Run> runs;
};

/// Gathers the runs whose name, model, length and recipe agree and whose seeds differ, in the order of first
/// appearance. Runs of one name that cannot be gathered (equal seeds, other recipes) stand apart, labelled with their
/// folders; why is said in `remarks`.
std::vector<RunGroup> group_runs(std::vector<Run> runs, std::vector<std::string>* remarks);

/// What a report shows.
struct Comparison {
  std::vector<RunGroup> groups;      ///< at least one
  size_t baseline = 0;               ///< which group the others are measured against
  Figure figure;                     ///< what their validations measured
  std::vector<std::string> remarks;  ///< sentences on what was not as it should be
};

/// Groups the runs and finds the baseline. @throws InputError for no runs, runs that record other tokenizers,
/// validation texts or figures, or an unknown baseline, as find_group.
Comparison compare_runs(std::vector<Run> runs, const std::string& baseline = "");

/// The group called `name`: a label, else the name or the folder of a run. An empty name is the first group.
/// @throws InputError naming the groups there are.
size_t find_group(const std::vector<RunGroup>& groups, const std::string& name);

/// The groups' labels, in their order.
std::vector<std::string> labels_of(const std::vector<RunGroup>& groups);

/// Whether a recipe's field is a seed, which the runs of one group may differ in.
bool names_seed(const std::string& path);

/// Whether some group has more than one run, so that there are deviations to speak of.
bool has_seeds(const Comparison& comparison);

/// The runs that stand for the group: the finished ones; where there is none, those that were evaluated, or all.
std::vector<const Run*> counted_runs(const RunGroup& group);

/// Over the runs that have the field.
template <class Number>
Statistic statistic_over(const std::vector<const Run*>& runs, std::optional<Number> Run::*field) {
  std::vector<double> values;
  for (const Run* run : runs) {
    if (run->*field) values.push_back(static_cast<double>(*(run->*field)));
  }
  return statistic(values);
}

struct CurveStatistic {
  int64_t tokens = 0;
  Statistic loss;
};

/// Mean and deviation over curves, wherever all of them have a point. @param curves  tokens strictly increasing in
/// each.
std::vector<CurveStatistic> curve_statistics(const std::vector<const std::vector<CurvePoint>*>& curves);

/// The validation loss over the counted runs, wherever all of them were evaluated.
std::vector<CurveStatistic> validation_curve(const RunGroup& group);

/// What one run came to, with the seed that pairs it with a run of another group.
struct SeedValue {
  std::optional<int64_t> seed;
  double value = 0;
};

Statistic statistic_of(const std::vector<SeedValue>& values);

/// How far a group lies above the baseline in one quantity.
///
/// Runs of one seed see the same data in the same order, so that their difference varies less than either of them, and
/// `difference` is taken over these differences. Where no seed is in both groups, it is that of the two means, and
/// their deviations add in squares.
struct PairedDifference {
  std::vector<SeedValue> seeds;  ///< group minus baseline for each seed that both have, ascending; empty: unpaired
  Statistic difference;          ///< count 0: one of the groups has no value
  Interval interval;             ///< 95%, by Student's t; from minus to plus infinity below two pairs

  bool paired() const { return !seeds.empty(); }
  bool has_interval() const { return seeds.size() > 1; }
};

/// `group` minus `baseline`. @param group, baseline  each seed at most once.
PairedDifference paired_difference(const std::vector<SeedValue>& group, const std::vector<SeedValue>& baseline);

struct DifferencePoint {
  int64_t tokens = 0;
  PairedDifference loss;
};

struct LossDifference {
  std::vector<DifferencePoint> points;
  bool interpolated = false;  ///< some evaluations were at other tokens: straight lines between neighbours
};

/// Validation loss of `group` minus that of `baseline` at equal numbers of tokens; negative: better than the baseline.
///
/// Of the counted runs those are compared whose seeds are in both groups, or all of them where no seed is. Where at
/// least half of the evaluations of one side are at tokens of the other, exactly those points are compared; else both
/// are interpolated within the stretch they share.
LossDifference loss_difference(const RunGroup& group, const RunGroup& baseline);

/// The last point of loss_difference: what the report calls the difference. Absent: nothing to compare.
std::optional<DifferencePoint> final_difference(const RunGroup& group, const RunGroup& baseline);

/// The curve's mean over a centred window of about a twentieth of its points; narrower towards the ends, so that it
/// lags nowhere.
std::vector<CurvePoint> smooth_curve(const std::vector<CurvePoint>& curve);

}  // namespace prism
