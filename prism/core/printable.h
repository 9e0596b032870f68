// Text of unknown origin (file names, values, what a model wrote) made safe for a terminal.
//
//   say("note: {} was skipped", short_line(name, 60));
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace prism {

/// Control characters (line feed and tab apart), characters that turn the direction of text, and ill-formed UTF-8
/// become U+FFFD; CR LF and CR become LF.
std::string printable(std::string_view text);

/// printable() on one line: white space becomes a space.
std::string plain_line(std::string_view text);

/// Characters of well-formed UTF-8, which is the width of most scripts on a terminal.
size_t display_width(std::string_view text);

/// plain_line() of at most `most` columns: what is longer is cut and ends in an ellipsis.
std::string short_line(std::string_view text, size_t most);

/// printable(), each line of at most 1,000 columns: of a longer one the middle is left out, since a message says what
/// is wrong at its beginning and the way out at its end.
std::string message_text(std::string_view text);

}  // namespace prism
