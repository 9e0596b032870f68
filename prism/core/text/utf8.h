// Validates UTF-8 and finds where a text may be cut.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace prism {

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629), or npos if there is none.
size_t find_invalid_utf8(std::string_view text);

/// Length of the longest prefix that does not end inside a character, i.e. what can be shown while more bytes arrive.
size_t complete_utf8_prefix(std::string_view text);

/// The text with every ill-formed sequence replaced by U+FFFD, for display.
std::string replace_invalid_utf8(std::string_view text);

}  // namespace prism
