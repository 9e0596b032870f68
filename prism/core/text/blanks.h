// Blanks at the ends of a text: ASCII's white space.
//
//   trimmed(" World\r\n") == "World"
#pragma once

#include <string_view>

namespace prism {

constexpr std::string_view kBlanks = " \t\r\n\v\f";

/// Returns true for an empty text or one of blanks only.
constexpr bool is_blank(std::string_view text) {
  return text.find_first_not_of(kBlanks) == std::string_view::npos;
}

/// The text without blanks at its ends.
constexpr std::string_view trimmed(std::string_view text) {
  if (is_blank(text)) return {};
  const size_t first = text.find_first_not_of(kBlanks);
  return text.substr(first, text.find_last_not_of(kBlanks) - first + 1);
}

}  // namespace prism
