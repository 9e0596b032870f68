// Runs side by side: seeds of one experiment gathered, means and sample standard deviations, differences at equal
// tokens.
//
//   const Comparison comparison = compare_runs(std::move(runs));
//   const auto gap = loss_difference(comparison.groups[1], comparison.groups[0]);
//   if (!gap.points.empty()) fmt::print("{:+.4f}\n", gap.points.back().loss.mean);
#pragma once

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
  std::vector<std::string> remarks;  ///< sentences on what was not as it should be
};

/// Groups the runs and finds the baseline. @throws InputError for no runs or an unknown baseline, as find_group.
Comparison compare_runs(std::vector<Run> runs, const std::string& baseline = "");

/// The group called `name`: a label, else the name or the folder of a run. An empty name is the first group.
/// @throws InputError naming the groups there are.
size_t find_group(const std::vector<RunGroup>& groups, const std::string& name);

/// Whether a recipe's field is a seed, which the runs of one group may differ in.
bool names_seed(const std::string& path);

/// Whether some group has more than one run, so that there are deviations to speak of.
bool has_seeds(const Comparison& comparison);

/// The runs that stand for the group: the finished ones, or all of them where none is finished.
std::vector<const Run*> counted_runs(const RunGroup& group);

struct CurveStatistic {
  int64_t tokens = 0;
  Statistic loss;
};

/// The validation loss over the counted runs, wherever all of them were evaluated.
std::vector<CurveStatistic> validation_curve(const RunGroup& group);

struct LossDifference {
  std::vector<CurveStatistic> points;
  bool paired = false;        ///< statistics over differences of equal seeds; else deviations add in squares
  bool interpolated = false;  ///< some evaluations were at other tokens: straight lines between neighbours
};

/// Validation loss of `group` minus that of `baseline` at equal numbers of tokens; negative: better than the baseline.
///
/// Where at least half of the evaluations of one of them are at tokens of the other, exactly those points are compared;
/// else both are interpolated within the stretch they share.
LossDifference loss_difference(const RunGroup& group, const RunGroup& baseline);

/// The curve's mean over a centred window of about a twentieth of its points; narrower towards the ends, so that it
/// lags nowhere.
std::vector<CurvePoint> smooth_curve(const std::vector<CurvePoint>& curve);

}  // namespace prism
