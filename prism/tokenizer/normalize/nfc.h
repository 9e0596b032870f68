// Unicode's normalization form C, as the tokenizers of Qwen ask for.
//
//   to_nfc("e\u0301")   // "é"
#pragma once

#include <string>
#include <string_view>

namespace prism {

/// The text in normalization form C (Unicode Standard Annex 15), in the Unicode version of libutf8proc. Text that has
/// only characters that no normalization changes is copied; around the others, runs are normalized one by one.
/// @param text  well-formed UTF-8.
std::string to_nfc(std::string_view text);

}  // namespace prism
