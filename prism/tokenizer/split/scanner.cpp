#include "prism/tokenizer/split/scanner.h"

#include <cstdint>

#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

constexpr uint8_t kKind = kLetter | kNumber | kSpace;

/// A text together with the class table.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text), classes_(character_classes()) {}

  size_t size() const { return text_.size(); }
  char byte(size_t at) const { return text_[at]; }
  /// kLetter, kNumber, kSpace, or 0 for every other character.
  uint8_t kind(size_t at) const {
    const auto lead = static_cast<uint8_t>(text_[at]);
    return kKind & (lead < 0x80 ? classes_[lead] : classes_[decode_character(text_, at).code]);
  }
  size_t next(size_t at) const {
    const auto lead = static_cast<uint8_t>(text_[at]);
    return at + (lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4);
  }
  /// End of the longest run, possibly empty, of characters of one kind from `at`.
  size_t run(size_t at, uint8_t wanted) const {
    while (at < size() && kind(at) == wanted) at = next(at);
    return at;
  }
  size_t newlines(size_t at) const {
    while (at < size() && (byte(at) == '\r' || byte(at) == '\n')) ++at;
    return at;
  }
  /// End of the match of `\s+(?!\S)|\s+` at `at`, which must hold a space. Before other text, the last space is not
  /// included.
  size_t spaces(size_t at) const {
    const size_t end = run(at, kSpace);
    if (end == size()) return end;
    const size_t last = previous_character(text_, end);
    return last > at ? last : end;
  }

 private:
  std::string_view text_;
  const uint8_t* classes_;
};

/// End of 's 't 're 've 'm 'll 'd at `start`, which must hold an apostrophe; `start` if there is none.
size_t contraction_end(const Scanner& scan, size_t start, bool any_case) {
  const auto letter = [&](size_t at) {
    if (at >= scan.size()) return '\0';
    const char byte = scan.byte(at);
    return any_case && byte >= 'A' && byte <= 'Z' ? static_cast<char>(byte + 32) : byte;
  };
  const char first = letter(start + 1), second = letter(start + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return start + 2;
  if (((first == 'r' || first == 'v') && second == 'e') || (first == 'l' && second == 'l')) return start + 3;
  // U+017F, the long s, equals s without case.
  if (any_case && first == '\xC5' && second == '\xBF') return start + 3;
  return start;
}

}  // namespace

size_t gpt2_piece_end(std::string_view text, size_t start) {
  const Scanner scan(text);
  if (scan.byte(start) == '\'') {
    if (const size_t end = contraction_end(scan, start, /*any_case=*/false); end > start) return end;
  }
  const size_t body = start + (scan.byte(start) == ' ' ? 1 : 0);
  if (body < scan.size()) {
    if (const uint8_t kind = scan.kind(body); kind != kSpace) return scan.run(scan.next(body), kind);
  }
  return scan.spaces(start);
}

size_t llama3_piece_end(std::string_view text, size_t start, size_t max_digits) {
  const Scanner scan(text);
  const char first = scan.byte(start);
  if (first == '\'') {
    if (const size_t end = contraction_end(scan, start, /*any_case=*/true); end > start) return end;
  }
  const uint8_t kind = scan.kind(start);
  const size_t second = scan.next(start);
  if (kind == kLetter) return scan.run(second, kLetter);
  if (kind == kNumber) {
    size_t end = second;
    for (size_t digits = 1; digits < max_digits && end < scan.size() && scan.kind(end) == kNumber; ++digits)
      end = scan.next(end);
    return end;
  }
  const uint8_t second_kind = second < scan.size() ? scan.kind(second) : static_cast<uint8_t>(kSpace);
  if (second_kind == kLetter && first != '\r' && first != '\n') return scan.run(second, kLetter);
  if (kind == 0) return scan.newlines(scan.run(second, 0));
  if (first == ' ' && second_kind == 0) return scan.newlines(scan.run(second, 0));
  // White space up to and including its last line break, if any.
  const size_t end = scan.run(start, kSpace);
  for (size_t at = end; at > start; --at) {
    if (scan.byte(at - 1) == '\n' || scan.byte(at - 1) == '\r') return at;
  }
  return scan.spaces(start);
}

size_t digits_piece_end(std::string_view text, size_t start, bool individual) {
  const Scanner scan(text);
  const bool number = scan.kind(start) == kNumber;
  size_t end = scan.next(start);
  if (number && individual) return end;
  while (end < scan.size() && (scan.kind(end) == kNumber) == number) end = scan.next(end);
  return end;
}

}  // namespace prism
