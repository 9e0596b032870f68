#include "prism/data/pieces.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace prism {
namespace {

bool is_continuation(char byte) {
  return (static_cast<uint8_t>(byte) & 0xC0) == 0x80;
}

/// Returns true if any of the usual patterns treats the character as white space; control characters count as such.
bool is_white_space(std::string_view character) {
  using namespace std::string_view_literals;
  if (character.size() == 1) return static_cast<uint8_t>(character[0]) <= ' ';
  static constexpr std::array kSpaces = {"\xC2\x85"sv,     "\xC2\xA0"sv,     "\xE1\x9A\x80"sv,
                                         "\xE1\xA0\x8E"sv, "\xE2\x80\xA8"sv, "\xE2\x80\xA9"sv,
                                         "\xE2\x80\xAF"sv, "\xE2\x81\x9F"sv, "\xE3\x80\x80"sv};
  const bool quad = character.starts_with("\xE2\x80") && character >= "\xE2\x80\x80"sv && character <= "\xE2\x80\x8A"sv;
  return quad || std::find(kSpaces.begin(), kSpaces.end(), character) != kSpaces.end();
}

bool white_space_before(std::string_view text, size_t at) {
  size_t begin = at - 1;
  while (begin > 0 && at - begin < 4 && is_continuation(text[begin])) --begin;
  return is_white_space(text.substr(begin, at - begin));
}

bool white_space_at(std::string_view text, size_t at) {
  size_t end = at + 1;
  while (end < text.size() && end - at < 4 && is_continuation(text[end])) ++end;
  return is_white_space(text.substr(at, end - at));
}

/// Returns true at the two kinds of positions that piece_length() describes.
bool may_cut(std::string_view text, size_t at) {
  if (at < 2 || at >= text.size()) return false;
  if (text[at] == ' ' || text[at] == '\t') return !white_space_before(text, at);
  return text[at - 1] == '\n' && !white_space_before(text, at - 1) && !white_space_at(text, at);
}

}  // namespace

size_t piece_length(std::string_view text, size_t piece_bytes) {
  if (text.size() <= piece_bytes) return text.size();
  for (size_t at = piece_bytes; at >= piece_bytes / 2; --at) {
    if (may_cut(text, at)) return at;
  }
  const size_t longest = kLongestPiece * piece_bytes;
  for (size_t at = piece_bytes + 1; at < std::min(text.size(), longest); ++at) {
    if (may_cut(text, at)) return at;
  }
  if (text.size() <= longest) return text.size();
  size_t at = longest;
  while (longest - at < 3 && is_continuation(text[at])) --at;
  return at;
}

}  // namespace prism
