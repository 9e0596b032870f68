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

/// Their names, in the order in which they are explained.
std::vector<std::string> selector_names();

/// One line on the method, with its source.
std::string selector_help(const std::string& name);

/// The fields of the method's options, with defaults and what they mean, and `preset`, where there is a paper:
/// `official`, as the method's authors run it, or `paper`, as the tables of arXiv 2602.08426 do. @throws InputError for
/// an unknown name.
std::vector<FieldDescription> selector_fields(const std::string& name);
/// The settings that words like {"p", "0.9"} make, as find_selector() takes them: all fields, and the preset whose they
/// are, "changed" where one is not.
/// @throws InputError for unknown names and fields, and for texts that are no such value.
Json selector_settings(const std::string& name, const std::vector<std::pair<std::string, std::string>>& words);

/// @param settings  fields of the method's options; those that are left out are the preset's, or have their defaults.
/// @param costs     what `auto` decides by.
/// @throws InputError for unknown names and fields, and for values that make no sense.
std::unique_ptr<Selector> find_selector(const std::string& name, const Json& settings = Json::object(),
                                        const PrefillCosts& costs = {});

/// The shape whose cost find_selector(name, settings, costs) needs for heads of a type and width; absent where the
/// selector decides by no costs. @throws InputError as find_selector().
std::optional<PrefillShape> cost_shape(const std::string& name, const Json& settings, torch::ScalarType type,
                                       int64_t head_dim);

}  // namespace prism
