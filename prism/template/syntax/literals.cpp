#include "prism/template/syntax/literals.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>

#include "prism/template/values/characters.h"

namespace prism::jinja {
namespace {

bool is_decimal(char byte) {
  return byte >= '0' && byte <= '9';
}

bool is_name_byte(char byte) {
  return is_decimal(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') || byte == '_';
}

/// Value of a digit of base 16, or 99.
int digit_value(char byte) {
  if (is_decimal(byte)) return byte - '0';
  if (byte >= 'a' && byte <= 'f') return byte - 'a' + 10;
  if (byte >= 'A' && byte <= 'F') return byte - 'A' + 10;
  return 99;
}

/// End of a run of digits with single underscores between them, `at` if there is none.
size_t digits_end(std::string_view text, size_t at, int base) {
  size_t end = at;
  while (end < text.size()) {
    const size_t digit = end > at && text[end] == '_' ? end + 1 : end;
    if (digit >= text.size() || digit_value(text[digit]) >= base) break;
    end = digit + 1;
  }
  return end;
}

/// Size of the float at the beginning: digits with a fraction, an exponent or both. 0 if there is none.
size_t float_size(std::string_view text) {
  const size_t whole = digits_end(text, 0, 10);
  if (whole == 0) return 0;
  size_t end = whole;
  if (end + 1 < text.size() && text[end] == '.' && is_decimal(text[end + 1])) end = digits_end(text, end + 1, 10);
  if (end < text.size() && (text[end] == 'e' || text[end] == 'E')) {
    size_t digits = end + 1;
    if (digits < text.size() && (text[digits] == '+' || text[digits] == '-')) ++digits;
    const size_t exponent = digits_end(text, digits, 10);
    if (exponent > digits) end = exponent;
  }
  return end > whole ? end : 0;
}

/// Size of the integer at the beginning, its base and the size of its prefix. 0 if there is none.
size_t integer_size(std::string_view text, int* base, size_t* prefix) {
  *base = 10;
  *prefix = 0;
  if (text.empty() || !is_decimal(text[0])) return 0;
  if (text[0] != '0') return digits_end(text, 0, 10);
  if (text.size() > 2) {
    const char letter = static_cast<char>(text[1] | 0x20);
    const int other = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 0;
    const size_t digits = text[2] == '_' ? 3 : 2;
    if (other != 0 && digits < text.size() && digit_value(text[digits]) < other) {
      *base = other;
      *prefix = 2;
      return digits_end(text, digits, other);
    }
  }
  // A leading zero begins a number of zeros only.
  size_t end = 1;
  while (end < text.size()) {
    const size_t digit = text[end] == '_' ? end + 1 : end;
    if (digit >= text.size() || text[digit] != '0') break;
    end = digit + 1;
  }
  return end;
}

/// The text with every other character than ASCII's as \xNN, \uNNNN or \UNNNNNNNN.
std::string with_backslashes(std::string_view text) {
  std::string made;
  for (size_t at = 0; at < text.size();) {
    const auto character = static_cast<uint32_t>(next_character(text, &at));
    if (character < 0x80) {
      made += static_cast<char>(character);
    } else if (character < 0x100) {
      made += fmt::format("\\x{:02x}", character);
    } else {
      made += character < 0x10000 ? fmt::format("\\u{:04x}", character) : fmt::format("\\U{:08x}", character);
    }
  }
  return made;
}

/// Reads exactly `count` hexadecimal digits at `at`.
char32_t read_code(std::string_view text, size_t at, size_t count, int line) {
  uint32_t code = 0;
  for (size_t i = at; i < at + count; ++i) {
    if (i >= text.size() || digit_value(text[i]) > 15)
      refuse_syntax(line,
                    fmt::format("expected {} hexadecimal digits in an escape; found fewer; add the others.", count));
    code = code << 4 | static_cast<uint32_t>(digit_value(text[i]));
  }
  if (code > 0x10FFFF || (code >= 0xD800 && code < 0xE000))
    refuse_syntax(line, fmt::format("expected the code of a character in an escape; found {:x}; write the character "
                                    "itself.",
                                    code));
  return code;
}

/// Appends the escape whose letter is at `*at`, and moves `*at` past it.
void append_escape(std::string& made, std::string_view text, size_t* at, int line) {
  static constexpr std::string_view kLetters = "\\'\"abfnrtv", kBytes = "\\'\"\a\b\f\n\r\t\v";
  const char letter = text[(*at)++];
  if (letter == '\n') return;
  if (const size_t known = kLetters.find(letter); known != std::string_view::npos) {
    made += kBytes[known];
  } else if (letter == 'x' || letter == 'u' || letter == 'U') {
    const size_t count = letter == 'x' ? 2 : letter == 'u' ? 4 : 8;
    append_character(made, read_code(text, *at, count, line));
    *at += count;
  } else if (letter >= '0' && letter <= '7') {
    uint32_t code = static_cast<uint32_t>(letter - '0');
    for (int i = 0; i < 2 && *at < text.size() && text[*at] >= '0' && text[*at] <= '7'; ++i)
      code = code * 8 + static_cast<uint32_t>(text[(*at)++] - '0');
    append_character(made, code);
  } else if (letter == 'N') {
    refuse_syntax(line, "expected an escape that has no name; found \\N; write the character itself.");
  } else {
    made += '\\';
    made += letter;
  }
}

}  // namespace

size_t name_size(std::string_view text) {
  if (text.empty() || is_decimal(text[0])) return 0;
  return static_cast<size_t>(std::find_if_not(text.begin(), text.end(), is_name_byte) - text.begin());
}

size_t scan_number(std::string_view text, bool behind_dot, int line, Token* token) {
  int base = 10;
  size_t prefix = 0;
  const size_t as_float = behind_dot ? 0 : float_size(text);
  const size_t size = as_float > 0 ? as_float : integer_size(text, &base, &prefix);
  if (size == 0) return 0;
  std::string digits(text.substr(prefix, size - prefix));
  std::erase(digits, '_');
  if (as_float > 0) {
    token->kind = Token::Kind::real;
    token->number = std::strtod(digits.c_str(), nullptr);
    return size;
  }
  int64_t number = 0;
  if (std::from_chars(digits.data(), digits.data() + digits.size(), number, base).ec != std::errc())
    refuse_syntax(line, "expected whole numbers within 63 bits; found a larger one; use a smaller one or a float.");
  token->kind = Token::Kind::integer;
  token->number = number;
  return size;
}

std::string unescaped(std::string_view text, int line) {
  if (text.find('\\') == std::string_view::npos) return std::string(text);
  const std::string ascii = with_backslashes(text);
  std::string made;
  for (size_t at = 0; at < ascii.size();) {
    const char byte = ascii[at++];
    if (byte == '\\') {
      append_escape(made, ascii, &at, line);
    } else {
      made += byte;
    }
  }
  return made;
}

}  // namespace prism::jinja
