#include "prism/core/text/printable.h"

#include <fmt/format.h>

#include <algorithm>

#include "prism/core/text/utf8.h"

namespace prism {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Returns true if the three bytes at `i` change the direction of all text after them (U+202A to U+202E, U+2066 to
/// U+2069), which can make a name look like another one.
bool turns_direction(std::string_view valid, size_t i) {
  const std::string_view three = valid.substr(i, 3);
  return (three >= "\u202A" && three <= "\u202E") || (three >= "\u2066" && three <= "\u2069");
}

/// Offset of the character after the one at `i`.
size_t next_character(std::string_view valid, size_t i) {
  ++i;
  while (i < valid.size() && (static_cast<unsigned char>(valid[i]) & 0xC0) == 0x80) ++i;
  return i;
}

/// The first `most` characters.
std::string_view first_characters(std::string_view valid, size_t most) {
  size_t end = 0;
  for (size_t count = 0; count < most && end < valid.size(); ++count) end = next_character(valid, end);
  return valid.substr(0, end);
}

}  // namespace

std::string printable(std::string_view text) {
  const std::string valid = replace_invalid_utf8(text);
  std::string result;
  result.reserve(valid.size());
  for (size_t i = 0; i < valid.size(); ++i) {
    const auto byte = static_cast<unsigned char>(valid[i]);
    const auto next = i + 1 < valid.size() ? static_cast<unsigned char>(valid[i + 1]) : 0;
    if (byte == '\r') {
      if (next != '\n') result += '\n';
    } else if (byte == 0x7F || (byte < 0x20 && byte != '\n' && byte != '\t')) {
      result += kReplacement;
    } else if (byte == 0xC2 && next < 0xA0) {  // U+0080 to U+009F are control characters to some terminals
      result += kReplacement;
      ++i;
    } else if (turns_direction(valid, i)) {
      result += kReplacement;
      i += 2;
    } else {
      result += static_cast<char>(byte);
    }
  }
  return result;
}

std::string plain_line(std::string_view text) {
  std::string result = printable(text);
  std::replace_if(
      result.begin(), result.end(), [](char c) { return c == '\n' || c == '\t'; }, ' ');
  return result;
}

size_t display_width(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; }));
}

std::string short_line(std::string_view text, size_t most) {
  std::string line = plain_line(text);
  if (display_width(line) <= most) return line;
  return std::string(first_characters(line, std::max<size_t>(most, 1) - 1)) + "…";
}

std::string message_text(std::string_view text) {
  constexpr size_t kMost = 1000, kBeginning = 700;
  const std::string valid = printable(text);
  std::string result;
  for (size_t begin = 0; begin < valid.size();) {
    const size_t end = std::min(valid.find('\n', begin), valid.size());
    const std::string_view line(valid.data() + begin, end - begin);
    const size_t width = display_width(line);
    if (width <= kMost) {
      result += line;
    } else {
      const auto ending = line.substr(first_characters(line, width - (kMost - kBeginning)).size());
      result += fmt::format("{} … {}", first_characters(line, kBeginning), ending);
    }
    if (end < valid.size()) result += '\n';
    begin = end + 1;
  }
  return result;
}

}  // namespace prism
