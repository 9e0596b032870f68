#include "prism/report/compare/swept.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "prism/report/compare/verdict.h"

namespace prism {
namespace {

/// The parts of a group's name.
struct SweptName {
  std::string arm, field;
  double value = 0;
};

/// The longest name of a field of the recipe with which the text ends; empty if there is none. Names of arms may have
/// underscores, too.
std::string field_at_end(std::string_view text, const std::vector<RecipeField>& recipe) {
  std::string found;
  for (const auto& [path, value] : recipe) {
    const auto name = path.substr(path.rfind('.') + 1);
    const bool is_whole = text == name, is_end = text.ends_with("_" + name);
    if ((is_whole || is_end) && name.size() > found.size()) found = name;
  }
  return found;
}

std::optional<SweptName> parse_name(const RunGroup& group) {
  const std::string_view label = group.label;
  const auto equals = label.find('=');
  if (equals == std::string_view::npos || label.find('=', equals + 1) != std::string_view::npos) return std::nullopt;
  SweptName name;
  const auto number = label.substr(equals + 1);
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), name.value);
  if (error != std::errc() || end != number.data() + number.size() || !std::isfinite(name.value)) return std::nullopt;
  name.field = field_at_end(label.substr(0, equals), group.runs.front().recipe);
  if (name.field.empty()) return std::nullopt;
  const auto arm_size = equals - name.field.size();
  name.arm = label.substr(0, arm_size == 0 ? 0 : arm_size - 1);
  return name;
}

}  // namespace

std::optional<SweptField> swept_field(const Comparison& comparison) {
  SweptField swept;
  for (const auto& [group, loss] : final_losses(comparison).groups) {
    const auto name = parse_name(comparison.groups[group]);
    if (!name) continue;
    if (swept.name.empty()) swept.name = name->field;
    if (name->field != swept.name) return std::nullopt;
    auto arm = std::ranges::find(swept.arms, name->arm, &SweptArm::label);
    if (arm == swept.arms.end()) arm = swept.arms.insert(arm, {name->arm, {}});
    arm->points.push_back({name->value, loss});
  }
  for (auto& arm : swept.arms) std::ranges::sort(arm.points, {}, &SweptPoint::value);
  if (std::ranges::none_of(swept.arms, [](const SweptArm& arm) { return arm.points.size() >= 3; })) return std::nullopt;
  return swept;
}

}  // namespace prism
