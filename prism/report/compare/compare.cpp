#include "prism/report/compare/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>
#include <map>
#include <optional>
#include <set>

#include "prism/core/error.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

constexpr double kConfidence = 0.95;

/// Returns true if the runs could be seeds of one experiment.
bool same_experiment(const Run& a, const Run& b) {
  const auto without_seed = [](const Run& run) {
    auto fields = run.recipe;
    // The name of a run and the source of its numbers are not part of the experiment.
    std::erase_if(fields, [](const RecipeField& field) {
      return names_seed(field.first) || field.first == "name" || field.first == "from";
    });
    return fields;
  };
  return a.name == b.name && a.schedule == b.schedule && a.layers == b.layers && a.parameters == b.parameters &&
         a.total == b.total && a.dtype == b.dtype && without_seed(a) == without_seed(b);
}

bool can_join(const RunGroup& group, const Run& run) {
  if (!run.seed || !same_experiment(group.runs.front(), run)) return false;
  return std::none_of(group.runs.begin(), group.runs.end(),
                      [&](const Run& member) { return !member.seed || member.seed == run.seed; });
}

std::string folder_text(const RunGroup& group) {
  return group.runs.front().folder.string();
}

void label_groups(std::vector<RunGroup>& groups, std::vector<std::string>* remarks) {
  std::set<std::string> told;
  for (auto& group : groups) {
    const std::string& name = group.runs.front().name;
    const auto same = [&](const RunGroup& other) { return other.runs.front().name == name; };
    group.label = name;
    if (std::count_if(groups.begin(), groups.end(), same) == 1) continue;
    group.label += fmt::format(" ({})", folder_text(group));
    if (!told.insert(name).second) continue;
    remarks->push_back(fmt::format(
        "Several runs are called \"{}\" but are not seeds of one experiment: their seeds are equal or missing, or "
        "their recipes differ. They are shown separately, with their folders in brackets.",
        name));
  }
}

/// The loss after `trained`, interpolated linearly. @pre within the curve.
double loss_at(const std::vector<CurvePoint>& curve, int64_t trained) {
  const auto next = std::lower_bound(curve.begin(), curve.end(), trained,
                                     [](const CurvePoint& point, int64_t value) { return point.trained < value; });
  if (next->trained == trained) return next->loss;
  const auto& before = *std::prev(next);
  const double share =
      static_cast<double>(trained - before.trained) / static_cast<double>(next->trained - before.trained);
  return before.loss + share * (next->loss - before.loss);
}

using CountSet = std::set<int64_t>;

CountSet common(const CountSet& a, const CountSet& b) {
  CountSet result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}

CountSet counts_of(const std::vector<CurvePoint>& curve) {
  CountSet result;
  for (const auto& point : curve) result.insert(point.trained);
  return result;
}

using Curves = std::vector<const std::vector<CurvePoint>*>;

/// The numbers of trained tokens or examples at which all curves have a point.
CountSet common_counts(const Curves& curves) {
  CountSet result;
  for (size_t i = 0; i < curves.size(); ++i) {
    result = i == 0 ? counts_of(*curves[i]) : common(result, counts_of(*curves[i]));
  }
  return result;
}

Curves validation_curves(const std::vector<const Run*>& runs) {
  Curves curves;
  for (const Run* run : runs) curves.push_back(&run->valid);
  return curves;
}

/// The evaluations of both sides within the range that every run covers.
CountSet shared_stretch(const std::vector<const Run*>& a, const std::vector<const Run*>& b) {
  CountSet result;
  int64_t first = 0, last = std::numeric_limits<int64_t>::max();
  for (const auto* side : {&a, &b}) {
    for (const Run* run : *side) {
      if (run->valid.empty()) return {};
      first = std::max(first, run->valid.front().trained);
      last = std::min(last, run->valid.back().trained);
      result.merge(counts_of(run->valid));
    }
  }
  std::erase_if(result, [&](int64_t trained) { return trained < first || trained > last; });
  return result;
}

std::vector<SeedValue> losses_at(const std::vector<const Run*>& runs, int64_t trained) {
  std::vector<SeedValue> values;
  for (const Run* run : runs) values.push_back({run->seed, loss_at(run->valid, trained)});
  return values;
}

std::vector<double> numbers_of(const std::vector<SeedValue>& values) {
  std::vector<double> numbers(values.size());
  std::transform(values.begin(), values.end(), numbers.begin(), [](const SeedValue& value) { return value.value; });
  return numbers;
}

/// Keeps only the runs whose seed is in both lists, unless there are none.
void keep_shared_seeds(std::vector<const Run*>& a, std::vector<const Run*>& b) {
  const auto shared = [](const std::vector<const Run*>& runs, const std::vector<const Run*>& others) {
    std::vector<const Run*> result;
    std::copy_if(runs.begin(), runs.end(), std::back_inserter(result), [&](const Run* run) {
      return run->seed &&
             std::any_of(others.begin(), others.end(), [&](const Run* other) { return other->seed == run->seed; });
    });
    return result;
  };
  auto left = shared(a, b), right = shared(b, a);
  if (left.empty()) return;
  a = std::move(left);
  b = std::move(right);
}

/// A recorded description for messages. 0 tokens stand for all, as in train.eval_tokens.
std::string shown_text(std::string recorded) {
  constexpr std::string_view kAll = ", 0 tokens";
  if (const size_t at = recorded.find(kAll); at != std::string::npos) recorded.replace(at, kAll.size(), ", all tokens");
  return recorded;
}

/// Losses on other tokens or another text cannot be compared. Runs that do not record theirs are accepted.
void check_same_text(const std::vector<Run>& runs, std::string Run::*field, const char* what) {
  const Run* first = nullptr;
  for (const auto& run : runs) {
    if ((run.*field).empty()) continue;
    if (first == nullptr) first = &run;
    PRISM_CHECK(run.*field == first->*field, "report",
                "expected runs whose losses use the same {}; found {} in {} and {} in {}; compare runs that share it, "
                "or compare models on the same texts with prism eval.",
                what, shown_text(first->*field), first->folder.string(), shown_text(run.*field), run.folder.string());
  }
}

/// Runs of one objective have the same metric and count the same unit.
void check_same_objective(const std::vector<Run>& runs) {
  for (const auto& run : runs)
    PRISM_CHECK(run.metric == runs.front().metric, "report",
                "expected runs with the same validation metric; found {} in {} and {} in {}; compare runs of one "
                "objective.",
                runs.front().metric.name, runs.front().folder.string(), run.metric.name, run.folder.string());
  for (const auto& run : runs)
    PRISM_CHECK(run.unit == runs.front().unit, "report",
                "expected runs that all count tokens or all count examples; found {} in {} and {} in {}; compare runs "
                "of one objective.",
                noun_of(runs.front().unit), runs.front().folder.string(), noun_of(run.unit), run.folder.string());
}

/// A remark that speeds were measured on a busy machine; std::nullopt if none was.
std::optional<std::string> busy_remark(const std::vector<Run>& runs) {
  std::vector<std::string> names;
  double most = 0;
  for (const auto& run : runs) {
    if (!run.was_busy()) continue;
    names.push_back(run.folder.string());
    most = std::max(most, *run.wait_share);
  }
  if (names.empty()) return std::nullopt;
  return fmt::format(
      "Speeds of {} were measured on a busy machine, whose threads waited up to {:.0f}% of the time for "
      "a core; they say little about the models.",
      join_names(names), 100 * most);
}

}  // namespace

std::vector<RunGroup> group_runs(std::vector<Run> runs, std::vector<std::string>* remarks) {
  std::vector<RunGroup> groups;
  for (auto& run : runs) {
    const auto home =
        std::find_if(groups.begin(), groups.end(), [&](const RunGroup& group) { return can_join(group, run); });
    if (home != groups.end()) {
      home->runs.push_back(std::move(run));
    } else {
      groups.push_back({{}, {}});
      groups.back().runs.push_back(std::move(run));
    }
  }
  label_groups(groups, remarks);
  return groups;
}

Comparison compare_runs(std::vector<Run> runs, const std::string& baseline) {
  PRISM_CHECK(!runs.empty(), "report", "expected at least one run; found none; name its folder.");
  check_same_text(runs, &Run::tokenizer, "tokenizer");
  check_same_text(runs, &Run::validation, "validation text");
  check_same_objective(runs);
  Comparison result;
  result.metric = runs.front().metric;
  result.unit = runs.front().unit;
  for (const auto& run : runs)
    if (run.is_cut)
      result.remarks.push_back(fmt::format(
          "The last record of {} was cut short and is ignored; all earlier ones are used.", run.folder.string()));
  if (auto remark = busy_remark(runs)) result.remarks.push_back(std::move(*remark));
  result.groups = group_runs(std::move(runs), &result.remarks);
  result.baseline = find_group(result.groups, baseline);
  return result;
}

size_t find_group(const std::vector<RunGroup>& groups, const std::string& name) {
  if (name.empty()) return 0;
  for (size_t i = 0; i < groups.size(); ++i)
    if (groups[i].label == name) return i;
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& run : groups[i].runs) {
      if (run.name == name || run.folder.lexically_normal() == std::filesystem::path(name).lexically_normal()) return i;
    }
  }
  std::map<std::string, size_t> by_label;
  for (size_t i = 0; i < groups.size(); ++i) by_label[groups[i].label] = i;
  return find_by_name(by_label, name, "report", "baseline");
}

std::vector<std::string> labels_of(const std::vector<RunGroup>& groups) {
  std::vector<std::string> labels;
  for (const auto& group : groups) labels.push_back(group.label);
  return labels;
}

bool names_seed(const std::string& path) {
  return path == "seed" || path.ends_with(".seed");
}

bool has_seeds(const Comparison& comparison) {
  return std::any_of(comparison.groups.begin(), comparison.groups.end(),
                     [](const RunGroup& group) { return group.runs.size() > 1; });
}

std::vector<const Run*> counted_runs(const RunGroup& group) {
  std::vector<const Run*> finished, evaluated, all;
  for (const auto& run : group.runs) {
    all.push_back(&run);
    if (run.valid.empty()) continue;
    evaluated.push_back(&run);
    if (run.finished) finished.push_back(&run);
  }
  return !finished.empty() ? finished : !evaluated.empty() ? evaluated : all;
}

std::vector<CurveStatistic> curve_statistics(const std::vector<const std::vector<CurvePoint>*>& curves) {
  std::vector<CurveStatistic> result;
  for (const int64_t trained : common_counts(curves)) {
    std::vector<double> losses;
    for (const auto* curve : curves) losses.push_back(loss_at(*curve, trained));
    result.push_back({trained, statistic(losses)});
  }
  return result;
}

std::vector<CurveStatistic> validation_curve(const RunGroup& group) {
  return curve_statistics(validation_curves(counted_runs(group)));
}

Statistic statistic_of(const std::vector<SeedValue>& values) {
  return statistic(numbers_of(values));
}

PairedDifference paired_difference(const std::vector<SeedValue>& group, const std::vector<SeedValue>& baseline) {
  PairedDifference result;
  for (const auto& value : group) {
    const auto partner = std::find_if(baseline.begin(), baseline.end(),
                                      [&](const SeedValue& other) { return value.seed && other.seed == value.seed; });
    if (partner != baseline.end()) result.seeds.push_back({value.seed, value.value - partner->value});
  }
  std::sort(result.seeds.begin(), result.seeds.end(),
            [](const SeedValue& a, const SeedValue& b) { return a.seed < b.seed; });
  const Statistic pairs = statistic_of(result.seeds);
  result.difference =
      result.paired() ? pairs : mean_difference(numbers_of(group), numbers_of(baseline), /*paired=*/false);
  result.interval = t_interval(pairs, kConfidence);
  return result;
}

LossDifference loss_difference(const RunGroup& group, const RunGroup& baseline) {
  auto left = counted_runs(group), right = counted_runs(baseline);
  keep_shared_seeds(left, right);
  const CountSet left_counts = common_counts(validation_curves(left)),
                 right_counts = common_counts(validation_curves(right));
  CountSet counts = common(left_counts, right_counts);
  LossDifference result;
  if (2 * counts.size() < std::min(left_counts.size(), right_counts.size())) {
    counts = shared_stretch(left, right);
    result.interpolated = true;
  }
  for (const int64_t at : counts) {
    result.points.push_back({at, paired_difference(losses_at(left, at), losses_at(right, at))});
  }
  return result;
}

std::optional<DifferencePoint> final_difference(const RunGroup& group, const RunGroup& baseline) {
  auto points = loss_difference(group, baseline).points;
  return points.empty() ? std::nullopt : std::optional(std::move(points.back()));
}

std::vector<CurvePoint> smooth_curve(const std::vector<CurvePoint>& curve) {
  const size_t widest = curve.size() / 40;
  std::vector<double> sums(curve.size() + 1, 0.0);
  for (size_t i = 0; i < curve.size(); ++i) sums[i + 1] = sums[i] + curve[i].loss;
  std::vector<CurvePoint> result = curve;
  for (size_t i = 0; i < curve.size(); ++i) {
    const size_t reach = std::min({widest, i, curve.size() - 1 - i});
    result[i].loss = (sums[i + reach + 1] - sums[i - reach]) / static_cast<double>(2 * reach + 1);
  }
  return result;
}

}  // namespace prism
