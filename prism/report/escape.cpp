#include "prism/report/escape.h"

#include <algorithm>

#include "prism/core/utf8.h"

namespace prism {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";

/// Whether the three bytes at `i` turn the direction of all text behind them (U+202A to U+202E, U+2066 to U+2069),
/// which shows a name as another one.
bool turns_direction(std::string_view valid, size_t i) {
  const std::string_view three = valid.substr(i, 3);
  return (three >= "\u202A" && three <= "\u202E") || (three >= "\u2066" && three <= "\u2069");
}

/// Well-formed UTF-8 without control characters other than line feed and tab; CR LF and CR become LF.
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
    } else if (byte == 0xC2 && next < 0xA0) {  // U+0080 to U+009F, which some terminals obey
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

}  // namespace

std::string escape_html(std::string_view text) {
  std::string result;
  for (const char c : printable(text)) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

std::string escape_script_json(std::string_view json) {
  std::string result;
  for (const char c : json) {
    if (c == '<' || c == '>' || c == '&') {
      result += c == '<' ? "\\u003c" : c == '>' ? "\\u003e" : "\\u0026";
    } else {
      result += c;
    }
  }
  return result;
}

std::string escape_markdown(std::string_view text) {
  std::string result;
  for (const char c : plain_line(text)) {
    if (c == '<' || c == '>' || c == '&') {
      result += c == '<' ? "&lt;" : c == '>' ? "&gt;" : "&amp;";
      continue;
    }
    if (std::string_view("\\`*_[]|#~!$").find(c) != std::string_view::npos) result += '\\';
    result += c;
  }
  return result;
}

std::string markdown_code_block(std::string_view text) {
  const std::string shown = printable(text);
  size_t longest = 0, current = 0;
  for (const char c : shown) {
    current = c == '`' ? current + 1 : 0;
    longest = std::max(longest, current);
  }
  const std::string fence(std::max<size_t>(3, longest + 1), '`');
  return fence + "text\n" + shown + (shown.ends_with('\n') ? "" : "\n") + fence + "\n";
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
  std::string cut;
  for (size_t i = 0; i < line.size() && display_width(cut) + 1 < most;) {
    size_t next = i + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xC0) == 0x80) ++next;
    cut += line.substr(i, next - i);
    i = next;
  }
  return cut + "…";
}

}  // namespace prism
