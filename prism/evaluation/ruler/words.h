// Adjectives and nouns of everyday English, for keys that no text contains by chance: "amber-harbor".
#pragma once

#include <string_view>
#include <vector>

namespace prism {

/// Chosen for prism: lower-case words of four to eight letters, without proper names.
const std::vector<std::string_view>& ruler_adjectives();
const std::vector<std::string_view>& ruler_nouns();

}  // namespace prism
