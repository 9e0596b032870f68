// Characters that become several in upper or title case.
//
//   find_special_case(U'ß')->upper == "SS"
#pragma once

namespace prism::jinja {

struct SpecialCase {
  char32_t character;
  const char* upper;  ///< UTF-8
  const char* title;
};

/// The row of a character, or null for those that have one character in every case.
const SpecialCase* find_special_case(char32_t character);

}  // namespace prism::jinja
