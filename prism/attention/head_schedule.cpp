#include "prism/attention/head_schedule.h"

#include <algorithm>
#include <charconv>

#include "prism/core/error.h"
#include "prism/core/text/counted.h"

namespace prism {
namespace {

constexpr int64_t kMost = 4096;  ///< layers, and heads of a layer

int64_t parse_count(std::string_view text, std::string_view part) {
  int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  PRISM_CHECK(code == std::errc() && end == text.data() + text.size() && value > 0 && value <= kMost, "head_schedule",
              "expected heads x layers such as 3x2, or a head count, up to {}; found \"{}\"; write for instance "
              "3x2,6x2,12x8.",
              kMost, part);
  return value;
}

struct Stage {
  int64_t heads = 0, layers = 0, first_layer = 0;
};

std::vector<Stage> stages_of(const HeadSchedule& schedule) {
  std::vector<Stage> stages;
  for (size_t layer = 0; layer < schedule.size(); ++layer) {
    if (stages.empty() || stages.back().heads != schedule[layer])
      stages.push_back({schedule[layer], 0, static_cast<int64_t>(layer)});
    ++stages.back().layers;
  }
  return stages;
}

/// Names the divisors of d_model nearest to `heads`, e.g. "4 and 6".
std::string nearest_divisors(int64_t heads, int64_t d_model) {
  int64_t below = std::min(heads, d_model), above = heads;
  while (below > 1 && d_model % below != 0) --below;
  while (above < d_model && d_model % above != 0) ++above;
  return above > d_model ? fmt::format("the nearest count that fits is {}", below)
                         : fmt::format("the nearest counts that fit are {} and {}", below, above);
}

}  // namespace

HeadSchedule parse_head_schedule(std::string_view text) {
  HeadSchedule schedule;
  while (true) {
    const size_t comma = text.find(',');
    std::string_view part = text.substr(0, comma);
    while (!part.empty() && part.front() == ' ') part.remove_prefix(1);
    while (!part.empty() && part.back() == ' ') part.remove_suffix(1);
    const size_t times = part.find('x');
    const int64_t heads = parse_count(part.substr(0, times), part);
    const int64_t layers = times == std::string_view::npos ? 1 : parse_count(part.substr(times + 1), part);
    schedule.insert(schedule.end(), static_cast<size_t>(layers), heads);
    PRISM_CHECK(static_cast<int64_t>(schedule.size()) <= kMost, "head_schedule",
                "expected at most {} layers; found more; choose fewer.", kMost);
    if (comma == std::string_view::npos) return schedule;
    text.remove_prefix(comma + 1);
  }
}

std::string format_head_schedule(const HeadSchedule& schedule) {
  std::string text;
  for (const auto& stage : stages_of(schedule))
    text += fmt::format("{}{}x{}", text.empty() ? "" : ",", stage.heads, stage.layers);
  return text;
}

void check_head_divides(int64_t heads, size_t layer, int64_t d_model) {
  PRISM_CHECK(heads > 0, "head_schedule", "layer {}: expected at least 1 head; found {}; raise it.", layer, heads);
  PRISM_CHECK(d_model % heads == 0, "head_schedule", "layer {}: expected heads that divide d_model = {}; found {}; {}.",
              layer, d_model, heads, nearest_divisors(heads, d_model));
}

void check_head_schedule(const HeadSchedule& schedule, int64_t d_model, int64_t base, bool allow_any) {
  PRISM_CHECK(!schedule.empty(), "head_schedule", "expected at least one layer; found none; write for instance 12x12.");
  for (size_t layer = 0; layer < schedule.size(); ++layer) check_head_divides(schedule[layer], layer, d_model);
  if (allow_any) return;
  for (size_t layer = 1; layer < schedule.size(); ++layer) {
    PRISM_CHECK(schedule[layer] >= schedule[layer - 1], "head_schedule",
                "layer {}: expected at least the {} heads of layer {}; found {}; a schedule never falls; raise it, or "
                "set allow_any.",
                layer, schedule[layer - 1], layer - 1, schedule[layer]);
  }
  PRISM_CHECK(base == 0 || schedule.back() == base, "head_schedule",
              "last layer: expected the base count of {}; found {}; a schedule ends with "
              "base_heads; add such a layer, or set allow_any.",
              counted(base, "head"), schedule.back());
}

std::vector<std::string> head_schedule_warnings(const HeadSchedule& schedule, int64_t base,
                                                const std::vector<int64_t>& head_dims) {
  std::vector<std::string> warnings;
  const auto stages = stages_of(schedule);
  if (stages.size() < 2) return warnings;
  if (base == 0) base = schedule.back();
  for (const auto& stage : stages) {
    if (stage.layers < 2 && stage.heads != base)
      warnings.push_back(
          fmt::format("the stage of {} at layer {} is one layer long; arXiv 2606.27449 advises 2 or more",
                      counted(stage.heads, "head"), stage.first_layer));
  }
  const int64_t at_base = std::count(schedule.begin(), schedule.end(), base);
  const auto layers = static_cast<int64_t>(schedule.size());
  if (2 * at_base < layers)
    warnings.push_back(fmt::format("{} of {} layers have the base count of {}; arXiv 2606.27449 advises half or more",
                                   at_base, layers, counted(base, "head")));
  const int64_t first_width = head_dims.at(static_cast<size_t>(stages.front().first_layer));
  if (first_width != 128 && first_width != 256)
    warnings.push_back(
        fmt::format("the first stage's heads are {} wide; 128 or 256 fit the tiles of GPUs", first_width));
  return warnings;
}

}  // namespace prism
