// Texts as PCRE2 may see them. Its Unicode version may be older than that of Hugging Face's tokenizers.
//
//   const auto text = with_stand_ins(original);   // search text ? *text : original
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace prism {

/// The text with a stand-in for each character that PCRE2 (10.40 or later) may put into another class than Hugging
/// Face's tokenizers do (Oniguruma, Unicode 16): those that were assigned after Unicode 14, and U+180E, which PCRE2's
/// \s matches. A stand-in is an older character of the same general category, and of as many bytes: offsets stay the
/// same.
/// @param text  well-formed UTF-8.
/// @return std::nullopt if the text has no such character.
std::optional<std::string> with_stand_ins(std::string_view text);

}  // namespace prism
