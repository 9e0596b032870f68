#include "prism/template/syntax/lexer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"
#include "prism/template/syntax/literals.h"
#include "prism/template/values/characters.h"

namespace prism::jinja {
namespace {

constexpr size_t kMaxTokens = 1'000'000;
constexpr size_t kMaxSourceBytes = size_t{16} << 20;

// Longest first.
constexpr std::array<std::string_view, 26> kOperators = {"//", "**", "==", "!=", ">=", "<=", "+", "-", "/",
                                                         "*",  "%",  "~",  "[",  "]",  "(",  ")", "{", "}",
                                                         ">",  "<",  "=",  ".",  ":",  "|",  ",", ";"};

/// CR LF and CR become LF, and one LF at the end is dropped.
std::string normalised(std::string_view source) {
  std::string text;
  text.reserve(source.size());
  for (size_t at = 0; at < source.size(); ++at) {
    if (source[at] == '\r') {
      text += '\n';
      if (at + 1 < source.size() && source[at + 1] == '\n') ++at;
    } else {
      text += source[at];
    }
  }
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

class Scanner {
 public:
  explicit Scanner(std::string source) : source_(std::move(source)) {}

  std::vector<Token> scan() {
    while (at_ < source_.size()) scan_text();
    add({.kind = Token::Kind::end});
    return std::move(tokens_);
  }

 private:
  /// The tag that opens at an offset.
  struct Opening {
    size_t at = 0, size = 2;  ///< of the braces and the sign after them
    char kind = '{';          ///< {, %, # or r for raw
    char sign = 0;            ///< -, + or none
  };

  std::string_view rest(size_t at) const { return std::string_view(source_).substr(at); }

  void add(Token token) {
    if (tokens_.size() >= kMaxTokens)
      refuse_syntax(line_, fmt::format("expected at most {} tokens; found more; shorten the template.", kMaxTokens));
    token.line = line_;
    tokens_.push_back(std::move(token));
  }

  /// Moves to `end`, counting lines.
  void move_to(size_t end) {
    line_ += static_cast<int>(
        std::count(source_.begin() + static_cast<ptrdiff_t>(at_), source_.begin() + static_cast<ptrdiff_t>(end), '\n'));
    line_starts_ = end > at_ ? source_[end - 1] == '\n' : line_starts_;
    at_ = end;
  }

  size_t behind_space(size_t at) const { return at + begin_without_space(rest(at)); }

  /// The size of `{% raw %}` or `{% endraw %}` at `at`, without white space and line break after it, or 0.
  size_t raw_tag(size_t at, std::string_view name, char* sign) const {
    if (!rest(at).starts_with("{%")) return 0;
    size_t end = at + 2;
    *sign = 0;
    if (end < source_.size() && (source_[end] == '-' || source_[end] == '+')) *sign = source_[end++];
    end = behind_space(end);
    if (!rest(end).starts_with(name)) return 0;
    end = behind_space(end + name.size());
    if (rest(end).starts_with("%}")) return end - at;
    if (rest(end).starts_with("-%}")) return end - at;
    return name == "endraw" && rest(end).starts_with("+%}") ? end - at : 0;
  }

  std::optional<Opening> find_opening() const {
    for (size_t at = source_.find('{', at_); at != std::string::npos && at + 1 < source_.size();
         at = source_.find('{', at + 1)) {
      Opening found;
      found.at = at;
      found.kind = source_[at + 1];
      if (found.kind != '{' && found.kind != '%' && found.kind != '#') continue;
      if (const size_t raw = raw_tag(at, "raw", &found.sign)) {
        found.kind = 'r';
        found.size = raw;
        return found;
      }
      found.sign = at + 2 < source_.size() && (source_[at + 2] == '-' || source_[at + 2] == '+') ? source_[at + 2] : 0;
      found.size = found.sign ? 3 : 2;
      return found;
    }
    return std::nullopt;
  }

  /// The text before a tag, with the white space removed that its sign or lstrip_blocks removes.
  std::string_view text_before(size_t end, char sign, bool is_variable) const {
    const std::string_view text = std::string_view(source_).substr(at_, end - at_);
    if (sign == '-') return text.substr(0, end_without_space(text));
    if (sign == '+' || is_variable) return text;
    const size_t line = text.rfind('\n') + 1;  // npos + 1 == 0
    if (line == 0 && !line_starts_) return text;
    return end_without_space(text.substr(line)) == 0 ? text.substr(0, line) : text;
  }

  void add_data(std::string_view text) {
    if (!text.empty()) add({.kind = Token::Kind::data, .text = std::string(text)});
  }

  void scan_text() {
    const auto opening = find_opening();
    if (!opening) {
      add_data(rest(at_));
      return move_to(source_.size());
    }
    add_data(text_before(opening->at, opening->sign, opening->kind == '{'));
    move_to(opening->at);
    const int first_line = line_;
    move_to(opening->at + opening->size);
    if (opening->kind == '#') return skip_comment(first_line);
    if (opening->kind == 'r') return scan_raw(first_line);
    const bool is_variable = opening->kind == '{';
    add({.kind = is_variable ? Token::Kind::variable_begin : Token::Kind::block_begin});
    scan_tag(is_variable, first_line);
  }

  /// Moves past the end of a tag at `at`, "%}" or "#}" with an optional sign, and what it removes; false if there is
  /// none. `end` is the closing pair.
  bool skip_end(size_t at, std::string_view end, bool trims) {
    if (trims && rest(at).starts_with("+") && rest(at + 1).starts_with(end)) {
      move_to(at + 3);
    } else if (rest(at).starts_with("-") && rest(at + 1).starts_with(end)) {
      move_to(behind_space(at + 3));
    } else if (rest(at).starts_with(end)) {
      move_to(at + 2 + (trims && rest(at + 2).starts_with("\n") ? 1 : 0));
    } else {
      return false;
    }
    return true;
  }

  void skip_comment(int first_line) {
    // The earliest end counts, including the sign before it.
    const size_t end = source_.find("#}", at_);
    if (end == std::string::npos)
      refuse_syntax(first_line, "expected #} after the comment; found the end of the template; add it.");
    const bool has_sign = end > at_ && (source_[end - 1] == '-' || source_[end - 1] == '+');
    skip_end(has_sign ? end - 1 : end, "#}", true);
  }

  void scan_raw(int first_line) {
    skip_end(at_, "%}", false);
    for (size_t at = source_.find("{%", at_); at != std::string::npos; at = source_.find("{%", at + 1)) {
      char sign = 0;
      const size_t size = raw_tag(at, "endraw", &sign);
      if (size == 0) continue;
      add_data(text_before(at, sign, false));
      skip_end(at + size, "%}", true);
      return;
    }
    refuse_syntax(first_line, "expected {% endraw %} after {% raw %}; found the end of the template; add it.");
  }

  void scan_tag(bool is_variable, int first_line) {
    std::string open;  // brackets that are not closed yet, as their closing signs
    while (at_ < source_.size()) {
      if (open.empty() && skip_end(at_, is_variable ? "}}" : "%}", !is_variable)) {
        add({.kind = is_variable ? Token::Kind::variable_end : Token::Kind::block_end});
        return;
      }
      const size_t behind = behind_space(at_);
      if (behind != at_) {
        move_to(behind);
      } else {
        scan_token(open);
      }
    }
    refuse_syntax(first_line, fmt::format("expected {} to close the tag; found the end of the template; add it.",
                                          is_variable ? "}}" : "%}"));
  }

  void scan_token(std::string& open) {
    Token token;
    const size_t size = scan_number(rest(at_), at_ > 0 && source_[at_ - 1] == '.', line_, &token);
    if (size > 0) {
      add(std::move(token));
      return move_to(at_ + size);
    }
    const char byte = source_[at_];
    if (byte == '"' || byte == '\'') return scan_string(byte);
    if (const size_t letters = name_size(rest(at_))) {
      add({.kind = Token::Kind::name, .text = std::string(rest(at_).substr(0, letters))});
      return move_to(at_ + letters);
    }
    const auto sign = std::find_if(kOperators.begin(), kOperators.end(),
                                   [&](std::string_view candidate) { return rest(at_).starts_with(candidate); });
    if (sign == kOperators.end()) {
      size_t end = at_;
      next_character(source_, &end);
      refuse_syntax(line_, fmt::format("expected a name, a number, text in quotes or an operator; found `{}`; remove "
                                       "it or put it into quotes.",
                                       plain_line(rest(at_).substr(0, end - at_))));
    }
    balance(open, (*sign)[0]);
    add({.kind = Token::Kind::sign, .text = std::string(*sign)});
    move_to(at_ + sign->size());
  }

  void balance(std::string& open, char sign) {
    static constexpr std::string_view kOpening = "([{", kClosing = ")]}";
    if (const size_t kind = kOpening.find(sign); kind != std::string_view::npos) open += kClosing[kind];
    if (kClosing.find(sign) == std::string_view::npos) return;
    if (open.empty() || open.back() != sign)
      refuse_syntax(line_, fmt::format("expected {}; found `{}`; correct the brackets.",
                                       open.empty() ? "no closing bracket" : fmt::format("`{}`", open.back()), sign));
    open.pop_back();
  }

  void scan_string(char quote) {
    size_t end = at_ + 1;
    while (end < source_.size() && source_[end] != quote) end += source_[end] == '\\' ? 2 : 1;
    if (end >= source_.size())
      refuse_syntax(line_, "expected a quote at the end of a text; found the end of the template; add it.");
    add({.kind = Token::Kind::string, .text = unescaped(rest(at_ + 1).substr(0, end - at_ - 1), line_)});
    move_to(end + 1);
  }

  std::string source_;
  size_t at_ = 0;
  int line_ = 1;
  bool line_starts_ = true;  ///< what was read last ended in a line break
  std::vector<Token> tokens_;
};

}  // namespace

void refuse_syntax(int line, const std::string& sentence) {
  throw InputError("template", fmt::format("line {}: {}", line, sentence));
}

std::string Token::description() const {
  switch (kind) {
    case Kind::data:
      return "text";
    case Kind::variable_begin:
      return "`{{`";
    case Kind::variable_end:
      return "`}}`";
    case Kind::block_begin:
      return "`{%`";
    case Kind::block_end:
      return "`%}`";
    case Kind::end:
      return "the end of the template";
    case Kind::string:
      return fmt::format("\"{}\"", short_line(text, 60));
    case Kind::integer:
      return fmt::format("`{}`", std::get<int64_t>(number));
    case Kind::real:
      return fmt::format("`{}`", std::get<double>(number));
    default:
      return fmt::format("`{}`", short_line(text, 60));
  }
}

std::vector<Token> tokenize(std::string_view source) {
  PRISM_CHECK(source.size() <= kMaxSourceBytes, "template",
              "expected a template of at most {} bytes; found {}; shorten it.", kMaxSourceBytes, source.size());
  const size_t invalid = find_invalid_utf8(source);
  PRISM_CHECK(invalid == std::string_view::npos, "template",
              "expected a template in UTF-8; found another byte at offset {}; convert it.", invalid);
  return Scanner(normalised(source)).scan();
}

}  // namespace prism::jinja
