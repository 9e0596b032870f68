// Tables of names. For an unknown name, the error suggests the nearest known one or lists all.
//
//   const auto& make = find_by_name(table, name, "selector", "selector");
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "prism/core/error.h"

namespace prism {

/// The candidate with the smallest edit distance to `name`, or "" if none is close enough to be a misspelling: the
/// distance, in which letters of another case count as equal, may be at most a third of the longer name's length, or 2
/// if that is larger.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

/// `text` quoted as one shell word: in single quotes if it has characters other than letters, digits and ._/+=:,@-.
std::string shell_word(const std::string& text);

/// "a, b and c". @param last  what is written before the last name.
std::string join_names(const std::vector<std::string>& names, std::string_view last = "and");

/// The names of a table's rows.
template <class Value>
std::vector<std::string> names_of(const std::map<std::string, Value>& table) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

/// The value of the row called `name`.
/// @param what  what a row is, in the singular ("backend").
/// @throws InputError naming the nearest row if there is one, and all rows.
template <class Value>
const Value& find_by_name(const std::map<std::string, Value>& table, const std::string& name,
                          std::string_view operation, std::string_view what) {
  if (auto row = table.find(name); row != table.end()) return row->second;
  const auto known = names_of(table);
  const std::string near = nearest_name(name, known);
  const bool vowel = std::string_view("aeiou").find(what.front()) != std::string_view::npos;
  const std::string expected =
      known.size() == 1 ? fmt::format("{}, the only {}", known.front(), what)
                        : fmt::format("{} {} that is one of {}", vowel ? "an" : "a", what, join_names(known));
  const std::string way_out = !near.empty()       ? fmt::format("did you mean {}?", near)
                              : known.size() == 1 ? fmt::format("write {}.", known.front())
                                                  : "choose one of them.";
  throw InputError(operation, fmt::format("expected {}; found \"{}\"; {}", expected, name, way_out));
}

}  // namespace prism
