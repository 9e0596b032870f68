// Text of unknown origin (file names, values, what a model wrote) made safe for a terminal.
//
//   say("note: {} was skipped", short_line(name, 60));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace prism {

/// Replaces control characters (except line feed and tab), characters that change the text direction and ill-formed
/// UTF-8 with U+FFFD. CR LF and CR become LF.
std::string printable(std::string_view text);

/// printable() on one line: line feeds and tabs become spaces.
std::string plain_line(std::string_view text);

/// Number of characters in well-formed UTF-8. For most scripts this is the width on a terminal.
size_t display_width(std::string_view text);

/// plain_line() with at most `most` columns: longer text is cut and ends in an ellipsis.
std::string short_line(std::string_view text, size_t most);

/// printable() with lines of at most 1,000 columns. Longer lines lose their middle, since a message says what is wrong
/// at its beginning and the way out at its end.
std::string message_text(std::string_view text);

}  // namespace prism
