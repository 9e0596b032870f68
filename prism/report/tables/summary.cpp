#include "prism/report/tables/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/progress.h"
#include "prism/core/text/names.h"
#include "prism/report/compare/cost.h"
#include "prism/report/compare/verdict.h"
#include "prism/report/tables/cells.h"
#include "prism/report/tables/result_notes.h"

namespace prism {
namespace {

constexpr NumberStyle kPerplexityStyle = {2, false};
constexpr size_t kMostCurveRows = 12;            // of tables of curves
constexpr std::ptrdiff_t kDifferenceColumn = 7;  // position in the table of runs, after the validation loss

bool all_finished(const Run& run) {
  return run.finished;
}

bool any_unfinished(const Comparison& comparison) {
  return std::any_of(comparison.groups.begin(), comparison.groups.end(), [](const RunGroup& group) {
    return !std::all_of(group.runs.begin(), group.runs.end(), all_finished);
  });
}

int64_t least_trained(const std::vector<const Run*>& runs) {
  int64_t least = runs.front()->trained;
  for (const Run* run : runs) least = std::min(least, run->trained);
  return least;
}

/// "finished", "diverged", "41% done", or "not finished" if the total is unknown.
std::string state_text(const Run& run) {
  if (run.finished) return "finished";
  if (run.diverged) return "diverged";
  if (!run.total || *run.total < 1) return "not finished";
  // Rounds down: a run that has not finished is not 100% done.
  const double percent = 100.0 * static_cast<double>(run.trained) / static_cast<double>(*run.total);
  return fmt::format("{:.0f}% done", std::clamp(std::floor(percent), 0.0, 99.0));
}

std::string group_state(const RunGroup& group) {
  const auto finished = std::count_if(group.runs.begin(), group.runs.end(), all_finished);
  if (finished > 0) return "finished";
  return state_text(*std::min_element(group.runs.begin(), group.runs.end(),
                                      [](const Run& a, const Run& b) { return a.trained < b.trained; }));
}

std::string seeds_text(const RunGroup& group) {
  const size_t counted = counted_runs(group).size();
  return counted == group.runs.size() ? std::to_string(counted) : fmt::format("{} of {}", counted, group.runs.size());
}

/// The optional columns of the results table.
struct ResultColumns {
  bool seeds, states, differences, intervals = false;
  std::optional<Verdict> verdict;

  explicit ResultColumns(const Comparison& comparison)
      : seeds(has_seeds(comparison)),
        states(any_unfinished(comparison)),
        differences(comparison.groups.size() > 1),
        verdict(find_verdict(comparison)) {
    for (const auto& group : comparison.groups) {
      if (&group == &comparison.groups[comparison.baseline]) continue;
      const auto gap = final_difference(group, comparison.groups[comparison.baseline]);
      intervals |= gap && gap->loss.has_interval();
    }
  }

  bool marks(size_t group) const { return verdict && verdict->best == group && verdict->is_shown(); }
};

void add_difference_cells(const Comparison& comparison, size_t group, bool intervals, std::vector<TableCell>& row) {
  const bool is_baseline = group == comparison.baseline;
  const auto gap = final_difference(comparison.groups[group], comparison.groups[comparison.baseline]);
  row.push_back(is_baseline ? TableCell{"baseline"}
                : gap       ? spread_cell(gap->loss.difference, kLossDifference)
                            : TableCell{kNoValue});
  if (intervals) row.push_back(is_baseline || !gap ? TableCell{kNoValue} : interval_cell(gap->loss, kLossDifference));
}

std::vector<TableCell> results_row(const Comparison& comparison, size_t index, const ResultColumns& columns) {
  const RunGroup& group = comparison.groups[index];
  const auto counted = counted_runs(group);
  const auto curve = validation_curve(group);
  const std::string& schedule = group.runs.front().schedule;
  std::vector<TableCell> row = {name_cell(comparison, index), {schedule.empty() ? kNoValue : schedule}};
  row.push_back(spread_cell(curve.empty() ? Statistic{} : curve.back().loss, kLossNumber));
  row.back().strong = columns.marks(index);
  if (comparison.metric.is_loss())
    row.push_back({curve.empty() ? kNoValue : number_text(std::exp(curve.back().loss.mean), kPerplexityStyle)});
  if (columns.differences) add_difference_cells(comparison, index, columns.intervals, row);
  if (columns.seeds) row.push_back({seeds_text(group)});
  if (columns.states) row.push_back({group_state(group)});
  row.push_back({grouped(group.runs.front().parameters)});
  row.push_back({grouped(least_trained(counted))});
  const Statistic rate = training_rate(comparison, index);
  // A timing belongs to the group: it does not depend on the seed.
  row.push_back(group.runs.front().timing ? TableCell{number_text(rate.mean, kWholeNumber)}
                                          : spread_cell(rate, kWholeNumber));
  double seconds = 0;
  for (const Run* run : counted) seconds += run->seconds;
  row.push_back({short_duration(seconds / static_cast<double>(counted.size()))});
  return row;
}

std::string last_loss(const std::vector<CurvePoint>& curve) {
  return curve.empty() ? kNoValue : number_text(curve.back().loss, kLossNumber);
}

std::string best_value(const Run& run) {
  const auto best = std::min_element(run.valid.begin(), run.valid.end(), [&](const CurvePoint& a, const CurvePoint& b) {
    return run.metric.is_better(a.loss, b.loss);
  });
  return run.valid.empty() ? kNoValue : number_text(best->loss, kLossNumber);
}

/// The columns of the table of runs, without the difference.
std::vector<TableCell> run_row(const Comparison& comparison, size_t group, const Run& run) {
  return {name_cell(comparison, group),
          {grouped(run.seed)},
          {run.folder.string()},
          {state_text(run)},
          {grouped(run.trained)},
          {last_loss(smooth_curve(run.train))},
          {last_loss(run.valid)},
          {best_value(run)},
          {!run.rate ? kNoValue : number_text(*run.rate, kWholeNumber) + (run.was_busy() ? " (busy)" : "")},
          {short_duration(run.seconds)}};
}

/// The difference of one pair.
TableCell seed_cell(const std::optional<DifferencePoint>& gap, const std::optional<int64_t>& seed) {
  if (!gap) return {kNoValue};
  const auto& pairs = gap->loss.seeds;
  const auto pair =
      std::find_if(pairs.begin(), pairs.end(), [&](const SeedValue& value) { return value.seed == seed; });
  return {pair == pairs.end() ? kNoValue : number_text(pair->value, kLossDifference)};
}

/// A sentence on what the seeds show about best and rival. It claims no more than they show.
std::string verdict_text(const Comparison& comparison, const Verdict& verdict) {
  const std::string& rival = comparison.groups[verdict.rival].label;
  const std::string whom = verdict.best == comparison.baseline ? "the runner-up, " + rival : rival;
  if (!verdict.difference) return fmt::format("There is no evaluation of {} to compare it with.", whom);
  const PairedDifference& gap = *verdict.difference;
  const std::string difference =
      fmt::format("Its difference to {}, {},", whom, minus_signs(spread_text(gap.difference, kLossDifference)));
  if (!gap.paired()) return difference + " is between runs that share no seed, so it is not paired and shows nothing.";
  if (!gap.has_interval()) return difference + " is from a single pair of runs, which shows nothing.";
  const char* found = verdict.is_shown() ? "excludes zero" : "includes zero, so it is not shown to be better";
  return fmt::format("{} has a 95% interval of {}, paired by seed, which {}.", difference,
                     minus_signs(interval_text(gap.interval, kLossDifference)), found);
}

}  // namespace

std::string headline(const Comparison& comparison) {
  if (comparison.groups.size() == 1) {
    const RunGroup& group = comparison.groups.front();
    const auto curve = validation_curve(group);
    if (curve.empty()) {
      const auto diverged =
          std::find_if(group.runs.begin(), group.runs.end(), [](const Run& run) { return run.diverged; });
      if (diverged != group.runs.end())
        return fmt::format("{} diverged after {} {}.", group.label, grouped(diverged->trained), comparison.counted());
      return fmt::format("{}: no validation {} has been recorded yet.", group.label, comparison.metric.noun());
    }
    return fmt::format("{}: validation {} {} after {} {}.", group.label, comparison.metric.noun(),
                       spread_text(curve.back().loss, kLossNumber), grouped(curve.back().trained),
                       comparison.counted());
  }
  const auto verdict = find_verdict(comparison);
  if (!verdict) {
    std::vector<std::string> diverged;
    for (const auto& group : comparison.groups)
      if (std::all_of(group.runs.begin(), group.runs.end(), [](const Run& run) { return run.diverged; }))
        diverged.push_back(group.label);
    const auto finals = final_losses(comparison);
    const std::string reason = finals.groups.empty()
                                   ? "No run has been evaluated"
                                   : fmt::format("Only {} was evaluated after {} {}, more than the others",
                                                 comparison.groups[finals.groups.front().group].label,
                                                 grouped(finals.trained), comparison.counted());
    return fmt::format("{}{}, so none is called the best.",
                       diverged.empty() ? "" : join_names(diverged) + " diverged. ", reason);
  }
  std::string among = verdict->of_all ? "" : "Of the runs that got that far, ";
  if (verdict->of_seeds > 0)
    among = fmt::format("Of the groups that share {} seeds with the baseline{}, ", verdict->of_seeds,
                        verdict->of_all ? "" : " that got that far");
  return fmt::format("{}{}{} has the {} validation {} after {} {}: {}. {}", among,
                     comparison.groups[verdict->best].label,
                     verdict->best == comparison.baseline ? ", the baseline," : "", comparison.metric.best(),
                     comparison.metric.noun(), grouped(verdict->trained), comparison.counted(),
                     spread_text(verdict->loss, kLossNumber), verdict_text(comparison, *verdict));
}

Table results_table(const Comparison& comparison) {
  const ResultColumns columns(comparison);
  const std::string metric = "val " + comparison.metric.noun();
  Table table{"Results", {{"run"}, {"schedule"}, {metric, true}}, {}, {}};
  if (comparison.metric.is_loss()) table.columns.push_back({"perplexity", true});
  if (columns.differences) table.columns.push_back({"Δ " + metric, true});
  if (columns.intervals) table.columns.push_back({"95% interval", true});
  if (columns.seeds) table.columns.push_back({"seeds", true});
  if (columns.states) table.columns.push_back({"state"});
  const std::string counted = comparison.counted();
  for (const auto& header : {std::string("parameters"), counted, counted + "/s", std::string("time")})
    table.columns.push_back({header, true});
  for (size_t i = 0; i < comparison.groups.size(); ++i) table.rows.push_back(results_row(comparison, i, columns));
  if (columns.differences) add_difference_notes(comparison, table);
  if (columns.intervals && comparison.groups.size() > 2)
    table.notes.emplace_back("Each interval is for one comparison; among many, one in twenty excludes zero by chance.");
  if (columns.seeds) {
    table.notes.push_back(fmt::format(
        "± is the sample standard deviation over seeds; time and {}/s are means over them.", comparison.counted()));
  }
  add_cost_note(comparison, table);
  add_timing_note(comparison, table);
  add_state_notes(comparison, table);
  return table;
}

Table reach_table(const Comparison& comparison) {
  Table table{fmt::format("Cost to reach the baseline's final {}", comparison.metric.noun()),
              {{"run"}, {"seeds that reach it", true}, {comparison.counted(), true}, {"seconds", true}},
              {},
              {}};
  const auto target = target_loss(comparison);
  if (!target || comparison.groups.size() < 2) return table;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const Reach reach = reach_loss(comparison.groups[i], *target);
    const bool reached = reach.trained.count > 0;
    table.rows.push_back({name_cell(comparison, i),
                          {fmt::format("{} of {}", reach.trained.count, reach.runs)},
                          reached ? spread_cell(reach.trained, kWholeNumber) : TableCell{"not reached"},
                          spread_cell(reach.seconds, kWholeNumber)});
  }
  table.notes.push_back(fmt::format(
      "The first point at which a validation curve, interpolated linearly between evaluations, is at or {3} {0}, the "
      "mean final validation {1} of {2}. Means and deviations are over the seeds that reach it; seconds include "
      "evaluations.",
      number_text(*target, kLossNumber), comparison.metric.noun(), comparison.groups[comparison.baseline].label,
      comparison.metric.less_is_better ? "below" : "above"));
  return table;
}

std::string front_text(const Comparison& comparison) {
  const auto points = cost_points(comparison);
  if (points.size() < 2) return {};
  std::vector<std::string> front;
  for (const auto& point : points) {
    if (point.on_front) front.push_back(comparison.groups[point.group].label);
  }
  return fmt::format("On the Pareto front of the means, where no other group is at least as {} and as fast: {}.",
                     comparison.metric.less_is_better ? "low" : "high", join_names(front));
}

Table runs_table(const Comparison& comparison) {
  const bool differences = comparison.groups.size() > 1;
  const std::string metric = "val " + comparison.metric.noun();
  Table table{"Every run",
              {{"run"},
               {"seed", true},
               {"folder"},
               {"state"},
               {comparison.counted(), true},
               {"train loss", true},
               {metric, true}},
              {},
              {"Train loss: the end of the smoothed curve."}};
  if (differences) {
    table.columns.push_back({"Δ " + metric, true});
    table.notes.push_back(fmt::format("Δ {}: difference to the baseline's run with the same seed.", metric));
  }
  table.columns.push_back({fmt::format("{} {}", comparison.metric.best(), metric), true});
  table.columns.push_back({fmt::format("{}/s", comparison.counted()), true});
  table.columns.push_back({"time", true});
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto gap = final_difference(comparison.groups[i], comparison.groups[comparison.baseline]);
    for (const auto& run : comparison.groups[i].runs) {
      auto& row = table.rows.emplace_back(run_row(comparison, i, run));
      if (!differences) continue;
      row.insert(row.begin() + kDifferenceColumn,
                 i == comparison.baseline ? TableCell{"baseline"} : seed_cell(gap, run.seed));
    }
  }
  return table;
}

Table validation_table(const Comparison& comparison) {
  Table table{
      fmt::format("Validation {} in numbers", comparison.metric.noun()), {{comparison.counted(), true}}, {}, {}};
  NumberedRows rows(comparison.groups.size());
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    table.columns.push_back({comparison.groups[i].label, true});
    for (const auto& [trained, loss] : validation_curve(comparison.groups[i])) {
      rows.set(trained, i, spread_cell(loss, kLossNumber));
    }
  }
  rows.append_to(table, kMostCurveRows);
  return table;
}

Table difference_table(const Comparison& comparison) {
  const RunGroup& baseline = comparison.groups[comparison.baseline];
  Table table{fmt::format("Validation {} minus that of {} in numbers", comparison.metric.noun(), baseline.label),
              {{comparison.counted(), true}},
              {},
              {}};
  NumberedRows rows(comparison.groups.size() - 1);
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    for (const auto& [trained, gap] : loss_difference(comparison.groups[i], baseline).points) {
      rows.set(trained, table.columns.size() - 1, spread_cell(gap.difference, kLossDifference));
    }
    table.columns.push_back({comparison.groups[i].label, true});
  }
  rows.append_to(table, kMostCurveRows);
  return table;
}

}  // namespace prism
