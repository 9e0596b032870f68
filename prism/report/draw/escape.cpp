#include "prism/report/draw/escape.h"

#include <algorithm>

#include "prism/core/text/printable.h"

namespace prism {

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

}  // namespace prism
