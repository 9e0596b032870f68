#include "prism/report/compare.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <numeric>
#include <set>

#include "prism/core/error.h"
#include "prism/core/names.h"

namespace prism {
namespace {

/// Whether the runs could be seeds of one experiment.
bool same_experiment(const Run& a, const Run& b) {
  const auto without_seed = [](const Run& run) {
    auto fields = run.recipe;
    std::erase_if(fields, [](const RecipeField& field) { return names_seed(field.first); });
    return fields;
  };
  return a.name == b.name && a.schedule == b.schedule && a.layers == b.layers && a.parameters == b.parameters &&
         a.total_tokens == b.total_tokens && a.dtype == b.dtype && without_seed(a) == without_seed(b);
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
        "Several runs are called \"{}\" but are no seeds of one experiment (their seeds are equal or missing, or "
        "their recipes differ): they stand apart, with their folders in brackets.",
        name));
  }
}

/// The loss after `tokens`, on a straight line between its neighbours. @pre within the curve.
double loss_at(const std::vector<CurvePoint>& curve, int64_t tokens) {
  const auto next = std::lower_bound(curve.begin(), curve.end(), tokens,
                                     [](const CurvePoint& point, int64_t value) { return point.tokens < value; });
  if (next->tokens == tokens) return next->loss;
  const auto& before = *std::prev(next);
  const double share = static_cast<double>(tokens - before.tokens) / static_cast<double>(next->tokens - before.tokens);
  return before.loss + share * (next->loss - before.loss);
}

using TokenSet = std::set<int64_t>;

TokenSet common(const TokenSet& a, const TokenSet& b) {
  TokenSet result;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(result, result.end()));
  return result;
}

TokenSet tokens_of(const Run& run) {
  TokenSet result;
  for (const auto& point : run.valid) result.insert(point.tokens);
  return result;
}

/// Where every one of the runs was evaluated.
TokenSet common_tokens(const std::vector<const Run*>& runs) {
  TokenSet result;
  for (size_t i = 0; i < runs.size(); ++i) result = i == 0 ? tokens_of(*runs[i]) : common(result, tokens_of(*runs[i]));
  return result;
}

/// All evaluations of either side within the stretch that every run covers.
TokenSet shared_stretch(const std::vector<const Run*>& a, const std::vector<const Run*>& b) {
  TokenSet result;
  int64_t first = 0, last = std::numeric_limits<int64_t>::max();
  for (const auto* side : {&a, &b}) {
    for (const Run* run : *side) {
      if (run->valid.empty()) return {};
      first = std::max(first, run->valid.front().tokens);
      last = std::min(last, run->valid.back().tokens);
      result.merge(tokens_of(*run));
    }
  }
  std::erase_if(result, [&](int64_t tokens) { return tokens < first || tokens > last; });
  return result;
}

std::vector<double> losses_at(const std::vector<const Run*>& runs, int64_t tokens) {
  std::vector<double> values;
  for (const Run* run : runs) values.push_back(loss_at(run->valid, tokens));
  return values;
}

/// Sorted by seed, so that equal positions are equal seeds. @return whether the seeds agree one to one.
bool pair_by_seed(std::vector<const Run*>& a, std::vector<const Run*>& b) {
  const auto by_seed = [](const Run* x, const Run* y) { return x->seed < y->seed; };
  std::sort(a.begin(), a.end(), by_seed);
  std::sort(b.begin(), b.end(), by_seed);
  return a.size() > 1 && std::equal(a.begin(), a.end(), b.begin(), b.end(),
                                    [](const Run* x, const Run* y) { return x->seed && x->seed == y->seed; });
}

Statistic difference(const std::vector<double>& a, const std::vector<double>& b, bool paired) {
  if (paired) {
    std::vector<double> gaps(a.size());
    std::transform(a.begin(), a.end(), b.begin(), gaps.begin(), std::minus<>());
    return statistic(gaps);
  }
  const Statistic left = statistic(a), right = statistic(b);
  const int64_t count = std::min(left.count, right.count);
  return {left.mean - right.mean, count > 1 ? std::hypot(left.deviation, right.deviation) : 0.0, count};
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
  Comparison result;
  result.groups = group_runs(std::move(runs), &result.remarks);
  result.baseline = find_group(result.groups, baseline);
  return result;
}

size_t find_group(const std::vector<RunGroup>& groups, const std::string& name) {
  if (name.empty()) return 0;
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].label == name) return i;
  }
  for (size_t i = 0; i < groups.size(); ++i) {
    for (const auto& run : groups[i].runs) {
      if (run.name == name || run.folder.lexically_normal() == std::filesystem::path(name).lexically_normal()) return i;
    }
  }
  std::vector<std::string> labels;
  for (const auto& group : groups) labels.push_back(group.label);
  const std::string near = nearest_name(name, labels);
  throw InputError("report", fmt::format("expected a baseline out of {}; found \"{}\"; {}", join_names(labels), name,
                                         near.empty() ? "choose one of them." : fmt::format("did you mean {}?", near)));
}

bool names_seed(const std::string& path) {
  return path == "seed" || path.ends_with(".seed");
}

bool has_seeds(const Comparison& comparison) {
  return std::any_of(comparison.groups.begin(), comparison.groups.end(),
                     [](const RunGroup& group) { return group.runs.size() > 1; });
}

std::vector<const Run*> counted_runs(const RunGroup& group) {
  std::vector<const Run*> finished, all;
  for (const auto& run : group.runs) {
    all.push_back(&run);
    if (run.finished && !run.valid.empty()) finished.push_back(&run);
  }
  return finished.empty() ? all : finished;
}

std::vector<CurveStatistic> validation_curve(const RunGroup& group) {
  const auto runs = counted_runs(group);
  std::vector<CurveStatistic> curve;
  for (const int64_t tokens : common_tokens(runs)) curve.push_back({tokens, statistic(losses_at(runs, tokens))});
  return curve;
}

LossDifference loss_difference(const RunGroup& group, const RunGroup& baseline) {
  auto left = counted_runs(group), right = counted_runs(baseline);
  const TokenSet left_tokens = common_tokens(left), right_tokens = common_tokens(right);
  TokenSet tokens = common(left_tokens, right_tokens);
  LossDifference result;
  if (2 * tokens.size() < std::min(left_tokens.size(), right_tokens.size())) {
    tokens = shared_stretch(left, right);
    result.interpolated = true;
  }
  result.paired = pair_by_seed(left, right);
  for (const int64_t at : tokens) {
    result.points.push_back({at, difference(losses_at(left, at), losses_at(right, at), result.paired)});
  }
  return result;
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
