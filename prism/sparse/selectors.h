// All selectors by name.
//
//   const auto selector = find_selector("spectral", {{"p_high", 0.9}});
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/core/fields.h"
#include "prism/sparse/prefill_cost.h"
#include "prism/sparse/selector.h"

namespace prism {

/// The names of all selectors, in the order of the documentation.
std::vector<std::string> selector_names();

/// One line that describes the method, with its source.
std::string selector_help(const std::string& name);

/// The fields of the method's options, with defaults and descriptions. Methods with a paper also have `preset`,
/// e.g. `official` for the settings of the method's authors or `paper` for those of the tables in arXiv 2602.08426.
/// @throws InputError for an unknown name.
std::vector<FieldDescription> selector_fields(const std::string& name);
/// Parses words such as {"p", "0.9"} into settings for find_selector(). The result has all fields and `preset`, which
/// is "changed" if a field differs from the preset.
/// @throws InputError for unknown names and fields, and for values that cannot be parsed.
Json selector_settings(const std::string& name, const std::vector<std::pair<std::string, std::string>>& words);

/// What differs between two results of selector_settings(): "p 0.95 instead of 0.9". Empty if nothing does.
std::string settings_difference(const Json& found, const Json& expected);

/// Creates a selector.
/// @param settings  fields of the method's options. Omitted fields have the preset's values, or their defaults.
/// @param costs     measured costs, which `auto` uses to decide.
/// @throws InputError for unknown names and fields, and for values out of range.
std::unique_ptr<Selector> find_selector(const std::string& name, const Json& settings = Json::object(),
                                        const PrefillCosts& costs = {});

/// The shape whose cost find_selector(name, settings, costs) needs for heads of a type and width; std::nullopt if the
/// selector needs no costs. @throws InputError as find_selector().
std::optional<PrefillShape> cost_shape(const std::string& name, const Json& settings, torch::ScalarType type,
                                       int64_t head_dim);

}  // namespace prism
