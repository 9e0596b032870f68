#include "prism/core/text/utf8.h"

#include <cstdint>

namespace prism {
namespace {

/// Length of the well-formed character at text[at], 0 if ill-formed. Sets `*cut` if the text merely ends too early.
size_t character_length(std::string_view text, size_t at, bool* cut) {
  *cut = false;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t lead = byte(at);
  if (lead < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80, high = 0xBF;  // allowed range of the second byte
  if (lead >= 0xC2 && lead <= 0xDF) {
    length = 2;
  } else if (lead >= 0xE0 && lead <= 0xEF) {
    length = 3;
    if (lead == 0xE0) low = 0xA0;
    if (lead == 0xED) high = 0x9F;
  } else if (lead >= 0xF0 && lead <= 0xF4) {
    length = 4;
    if (lead == 0xF0) low = 0x90;
    if (lead == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  for (size_t i = 1; i < length; ++i) {
    if (at + i == text.size()) {
      *cut = true;
      return 0;
    }
    const uint8_t next = byte(at + i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) return 0;
  }
  return length;
}

}  // namespace

size_t find_invalid_utf8(std::string_view text) {
  bool cut = false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at, &cut);
    if (length == 0) return at;
    at += length;
  }
  return std::string_view::npos;
}

size_t complete_utf8_prefix(std::string_view text) {
  // Only the last three bytes can belong to an incomplete character.
  for (size_t back = 1; back <= 3 && back <= text.size(); ++back) {
    const size_t at = text.size() - back;
    if ((static_cast<uint8_t>(text[at]) & 0xC0) == 0x80) continue;
    bool cut = false;
    character_length(text, at, &cut);
    return cut ? at : text.size();
  }
  return text.size();
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string clean;
  bool cut = false;
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_length(text, at, &cut);
    if (length == 0) {
      clean += "\xEF\xBF\xBD";
      ++at;
    } else {
      clean += text.substr(at, length);
      at += length;
    }
  }
  return clean;
}

}  // namespace prism
