// The filters: value | name(arguments).
//
//   const Filter trim = filters().at("trim");
//   Value cut = trim(run, text, {});
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "prism/core/text/names.h"
#include "prism/template/values/rendering.h"
#include "prism/template/values/value.h"

namespace prism::jinja {

using Filter = Value (*)(Rendering& run, const Value& input, const Arguments& arguments);
using FilterTable = std::map<std::string, Filter>;

/// All filters by name: Jinja2's, except those that no chat template uses.
const FilterTable& filters();

/// Parts of the table, one for each source.
FilterTable text_filters();
FilterTable list_filters();
FilterTable selection_filters();
FilterTable number_filters();

/// "expected one of the filters ...; found `foo`; ...", with the nearest name if there is one.
template <class Table>
std::string unknown_name(const Table& table, const std::string& name, std::string_view what) {
  const auto names = names_of(table);
  const std::string near = nearest_name(name, names);
  return fmt::format("expected one of the {}s {}; found `{}`; {}", what, join_names(names), name.substr(0, 60),
                     near.empty() ? "write the template without it." : fmt::format("did you mean {}?", near));
}

}  // namespace prism::jinja
