#include "prism/cli/evaluation/task_output.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>
#include <utility>

#include "prism/cli/evaluation/eval.h"
#include "prism/core/numbers/item_figure.h"
#include "prism/core/statistics.h"

namespace prism {
namespace {

/// Widths of the first two columns.
struct NameWidths {
  size_t task = 22, figure = 15;

  void hold(const std::string& task_name, const std::string& figure_name) {
    task = std::max(task, task_name.size());
    figure = std::max(figure, figure_name.size() + 1);
  }
};

std::string value_text(double value) {
  if (std::isnan(value)) return "";
  return std::abs(value) < 1e6 ? fmt::format("{:.4f}", value) : fmt::format("{:.4g}", value);
}

void print_figure_row(const std::string& task, const Figure& figure, const TaskFigures& of, const NameWidths& widths,
                      bool shows_kept) {
  fmt::print("{:<{}}  {:>6}  {:<{}}{:>12}{:>12}{:>8}", task, widths.task, task.empty() ? "" : fmt::to_string(of.items),
             figure.name, widths.figure, value_text(figure.value), value_text(figure.standard_error),
             of.task.chance == 0 || is_less_better(figure.name) ? "" : fmt::format("{:.2f}", of.task.chance));
  if (shows_kept && !task.empty())
    fmt::print("{:>9.3f}{}", of.kept.density(),
               of.kept.recall_queries > 0 ? fmt::format("{:>9.4f}", of.kept.recall()) : "");
  fmt::print("\n");
}

/// The tasks of each group of which all parts are there, as one task.
std::vector<TaskDifference> difference_groups(const std::vector<TaskDifference>& all) {
  std::map<std::string, std::vector<const TaskDifference*>> parts;
  std::vector<TaskDifference> groups;
  for (const auto& each : all) {
    auto& found = parts[each.task.group];
    found.push_back(&each);
    if (each.task.group.empty() || std::ssize(found) < each.task.parts) continue;
    TaskDifference group{.task = each.task, .figures = {}, .nats = {}};
    group.task.name = each.task.group;
    std::vector<PairedScore> scores;
    for (const auto* part : found) {
      scores.push_back(part->figures.at(0).paired);
      group.nats.insert(group.nats.end(), part->nats.begin(), part->nats.end());
    }
    group.figures = {{each.figures.at(0).name, paired_score(scores)}};
    groups.push_back(std::move(group));
  }
  return groups;
}

void print_difference(const TaskDifference& difference, const NameWidths& widths) {
  for (const auto& [name, paired] : difference.figures) {
    fmt::print("{:<{}}  {:<{}}", name == difference.figures.front().name ? difference.task.name : "", widths.task, name,
               widths.figure);
    if (!std::isfinite(paired.difference)) {  // e.g. of perplexities by word of a text without words
      fmt::print("not defined\n");
      continue;
    }
    fmt::print("{}", signed_text(paired.difference, 4));
    if (paired.items >= 2 && std::isfinite(paired.standard_error))
      fmt::print(" +- {} (95%: {})", value_text(paired.standard_error), interval_text(paired.interval, 4));
    if (!std::isnan(paired.p))
      fmt::print("; {} better, {} worse, sign test: p = {:.3g}", paired.more_a, paired.more_b, paired.p);
    fmt::print("\n");
  }
  if (difference.nats.empty()) return;
  fmt::print("{:<{}}  KL(second || first) {}\n", "", widths.task, divergence_text(difference.nats));
}

Json paired_to_json(const PairedScore& paired) {
  const auto known = [](bool is_known, double value) { return is_known ? Json(value) : Json(); };
  return {{"difference", paired.difference},
          {"standard_error", known(paired.items >= 2, paired.standard_error)},
          {"low", known(paired.items >= 2, paired.interval.low)},
          {"high", known(paired.items >= 2, paired.interval.high)},
          {"better", paired.more_a},
          {"worse", paired.more_b},
          {"p", known(!std::isnan(paired.p), paired.p)}};
}

}  // namespace

Json divergence_to_json(const std::vector<double>& nats) {
  const auto high = quantiles(nats, {0.95, 0.99});
  return {{"tokens", nats.size()}, {"mean", mean_of(nats)}, {"p95", high[0]}, {"p99", high[1]}};
}

std::string divergence_text(const std::vector<double>& nats) {
  const auto high = quantiles(nats, {0.95, 0.99});
  return fmt::format("of {} scored tokens: mean {:.3g} nats, 95th percentile {:.3g}, 99th {:.3g}", nats.size(),
                     mean_of(nats), high[0], high[1]);
}

void print_figures(const std::vector<TaskFigures>& all, bool shows_kept) {
  const auto groups = groups_of(all);
  const auto is_hidden = [&](const TaskFigures& each) {
    return each.task.parts > kMostPartsShown &&
           std::ranges::any_of(groups, [&](const auto& group) { return group.first == each.task.group; });
  };
  NameWidths widths;
  bool has_recall = false;
  for (const auto& each : all) {
    for (const auto& figure : each.figures)
      widths.hold(is_hidden(each) ? each.task.group : each.task.name, figure.name);
    has_recall = has_recall || each.kept.recall_queries > 0;
  }
  fmt::print("{:<{}}  {:>6}  {:<{}}{:>12}{:>12}{:>8}{}{}\n", "task", widths.task, "items", "figure", widths.figure,
             "value", "+- error", "chance", shows_kept ? "  density" : "", shows_kept && has_recall ? "   recall" : "");
  for (const auto& each : all) {
    if (is_hidden(each)) continue;
    for (const auto& figure : each.figures)
      print_figure_row(figure.name == each.figures.front().name ? each.task.name : "", figure, each, widths,
                       shows_kept);
  }
  for (const auto& [name, figure] : groups) {
    TaskFigures whole{.task = {}, .figures = {}};
    for (const auto& each : all) {
      if (each.task.group != name) continue;
      whole.task = each.task;
      whole.items += each.items;
      whole.kept += each.kept;
    }
    print_figure_row(name, figure, whole, widths, shows_kept);
  }
}

void print_differences(const std::vector<TaskDifference>& all) {
  const auto groups = difference_groups(all);
  const auto is_hidden = [&](const TaskDifference& each) {
    return each.task.parts > kMostPartsShown &&
           std::ranges::any_of(groups, [&](const TaskDifference& group) { return group.task.name == each.task.group; });
  };
  NameWidths widths;
  for (const auto& each : all)
    for (const auto& [name, paired] : each.figures)
      widths.hold(is_hidden(each) ? each.task.group : each.task.name, name);
  for (const auto& each : all)
    if (!is_hidden(each)) print_difference(each, widths);
  for (const auto& each : groups) print_difference(each, widths);
}

Json differences_to_json(const std::vector<TaskDifference>& all) {
  Json json = Json::object();
  auto both = all;
  for (auto& group : difference_groups(all)) both.push_back(std::move(group));
  for (const auto& each : both) {
    auto& of_task = json[each.task.name];
    for (const auto& [name, paired] : each.figures) of_task[name] = paired_to_json(paired);
    if (!each.nats.empty()) of_task["divergence"] = divergence_to_json(each.nats);
  }
  return json;
}

}  // namespace prism
