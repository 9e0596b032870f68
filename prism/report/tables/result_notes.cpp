#include "prism/report/tables/result_notes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/text/names.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

/// Groups whose difference was computed in another way than usual.
struct DifferenceRemarks {
  std::vector<std::string> unpaired, interpolated;
  std::map<size_t, std::vector<std::string>> by_pairs;    ///< groups with fewer pairs than runs
  std::map<int64_t, std::vector<std::string>> by_length;  ///< groups whose difference is before their end
  bool paired = false;

  explicit DifferenceRemarks(const Comparison& comparison) {
    for (size_t i = 0; i < comparison.groups.size(); ++i) {
      if (i != comparison.baseline) add(comparison.groups[i], comparison.groups[comparison.baseline]);
    }
  }

 private:
  void add(const RunGroup& group, const RunGroup& baseline) {
    const auto gap = loss_difference(group, baseline);
    if (gap.points.empty()) return;
    const auto& [trained, loss] = gap.points.back();
    const size_t pairs = loss.seeds.size();
    paired |= loss.has_interval();
    if (!loss.paired()) unpaired.push_back(group.label);
    if (loss.paired() && pairs < std::max(counted_runs(group).size(), counted_runs(baseline).size())) {
      by_pairs[pairs].push_back(group.label);
    }
    if (gap.interpolated) interpolated.push_back(group.label);
    const auto curve = validation_curve(group);
    if (curve.empty() || curve.back().trained != trained) by_length[trained].push_back(group.label);
  }
};

/// "2,000 tokens of 3,000 so far", for runs of one group.
std::string progress_text(const std::vector<const Run*>& runs, const std::string& counted) {
  const auto [least, most] =
      std::minmax_element(runs.begin(), runs.end(), [](const Run* a, const Run* b) { return a->trained < b->trained; });
  std::string text = grouped((*least)->trained);
  if ((*most)->trained != (*least)->trained) text += " to " + grouped((*most)->trained);
  text += " " + counted;
  if (const auto& total = runs.front()->total) text += " of " + grouped(*total);
  const bool evaluated = std::any_of(runs.begin(), runs.end(), [](const Run* run) { return !run->valid.empty(); });
  return text + " so far" + (evaluated ? "" : ", no evaluation yet");
}

/// ", seeds 2 and 3,": the seeds of the runs meant; empty if the group has only one run.
std::string seeds_clause(const RunGroup& group, const std::vector<const Run*>& runs) {
  if (group.runs.size() == 1) return {};
  std::vector<std::string> seeds;
  for (const Run* run : runs) seeds.push_back(grouped(run->seed));
  return fmt::format(", seed{} {},", seeds.size() == 1 ? "" : "s", join_names(seeds));
}

/// Number of key values per token over all layers; the values have the same number.
int64_t cache_width(const Run& run) {
  int64_t sum = 0;
  for (const auto& layer : run.layers) sum += layer.kv_heads * layer.head_dim;
  return sum;
}

}  // namespace

void add_difference_notes(const Comparison& comparison, Table& table) {
  const std::string& baseline = comparison.groups[comparison.baseline].label;
  const DifferenceRemarks remarks(comparison);
  table.notes.push_back(
      fmt::format("Δ val {0}: validation {0} minus that of {1} after equal numbers of {4}{2}; {3} is better.",
                  comparison.metric.noun(), baseline, remarks.paired ? ", paired by seed" : "",
                  comparison.metric.less_is_better ? "negative" : "positive", comparison.counted()));
  table.notes.push_back(fmt::format(
      "The {1} validation {2} is marked (bold; a star in a terminal) only if the 95% interval (Student's t) of its "
      "difference to {0}, paired by seed, excludes zero. If {0} itself is {1}, its difference to the runner-up counts. "
      "Groups with fewer seeds than others are not marked.",
      baseline, comparison.metric.best(), comparison.metric.noun()));
  if (!remarks.unpaired.empty()) {
    table.notes.push_back(
        fmt::format("No pairing for {}: no seed is shared with {}. The difference is that of the means, its ± is the "
                    "root of the sum of both squared deviations, and there is no interval.",
                    join_names(remarks.unpaired), baseline));
  }
  for (const auto& [pairs, labels] : remarks.by_pairs) {
    table.notes.push_back(fmt::format("The difference of {} is over the {} shared with {}.", join_names(labels),
                                      pairs == 1 ? "one seed" : fmt::format("{} seeds", pairs), baseline));
  }
  for (const auto& [trained, labels] : remarks.by_length) {
    table.notes.push_back(fmt::format("The difference of {} is taken after {} {}, the last evaluation shared with {}.",
                                      join_names(labels), grouped(trained), comparison.counted(), baseline));
  }
  if (!remarks.interpolated.empty()) {
    table.notes.push_back(
        fmt::format("Some runs were evaluated at different numbers of {}; evaluations are interpolated linearly.",
                    comparison.counted()));
  }
}

void add_cost_note(const Comparison& comparison, Table& table) {
  const Run& baseline = comparison.groups[comparison.baseline].runs.front();
  const auto beyond = [](int64_t value, int64_t base) {
    return minus_signs(fmt::format("{:+.1f}%", 100 * (static_cast<double>(value) / static_cast<double>(base) - 1)));
  };
  std::vector<std::string> texts;
  for (const auto& group : comparison.groups) {
    const Run& run = group.runs.front();
    std::vector<std::string> parts;
    if (run.flops_per_token && baseline.flops_per_token && *baseline.flops_per_token > 0 &&
        *run.flops_per_token != *baseline.flops_per_token)
      parts.push_back(fmt::format("{} FLOPs", beyond(*run.flops_per_token, *baseline.flops_per_token)));
    if (cache_width(run) > 0 && cache_width(baseline) > 0 && cache_width(run) != cache_width(baseline))
      parts.push_back(fmt::format("{} KV cache", beyond(cache_width(run), cache_width(baseline))));
    if (!parts.empty()) texts.push_back(fmt::format("{} {}", group.label, join_names(parts)));
  }
  if (!texts.empty())
    table.notes.push_back(fmt::format("Cost of a token relative to {}: {}.",
                                      comparison.groups[comparison.baseline].label, fmt::join(texts, "; ")));
}

void add_timing_note(const Comparison& comparison, Table& table) {
  std::vector<std::string> ratios;
  std::optional<RunTiming> timing;
  for (const auto& group : comparison.groups) {
    const auto& own = group.runs.front().timing;
    if (!own) continue;
    timing = own;
    ratios.push_back(fmt::format("{} {:.3f}", group.label, own->ratio));
  }
  if (!timing) return;
  table.notes.push_back(
      fmt::format("tokens/s: medians of {0} steps on {1} threads of {2}, timed alternately with {3}. Rates relative "
                  "to {3}: {4}.",
                  timing->steps, timing->threads, timing->cpu, timing->baseline, join_names(ratios)));
}

void add_state_notes(const Comparison& comparison, Table& table) {
  for (const auto& group : comparison.groups) {
    std::vector<const Run*> unfinished;
    for (const auto& run : group.runs) {
      if (run.diverged)
        table.notes.push_back(
            fmt::format("{}{} diverged after {} {}{}.", group.label, seeds_clause(group, {&run}), grouped(run.trained),
                        comparison.counted(),
                        run.diverged->empty() ? "" : ", the first value that is not finite in " + *run.diverged));
      else if (!run.finished)
        unfinished.push_back(&run);
    }
    if (unfinished.empty()) continue;
    table.notes.push_back(fmt::format("{}{} {} not finished: {}.", group.label, seeds_clause(group, unfinished),
                                      unfinished.size() == 1 ? "has" : "have",
                                      progress_text(unfinished, comparison.counted())));
  }
}

}  // namespace prism
