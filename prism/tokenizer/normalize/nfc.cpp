#include "prism/tokenizer/normalize/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <memory>
#include <new>
#include <vector>

#include "prism/core/error.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

constexpr uint32_t kUnicodeSize = 0x110000;
constexpr uint32_t kFirstActive = 0x300;  // no smaller character is changed by NFC or joins the one before it

/// [kUnicodeSize] true for characters that NFC may change, move, or join to the one before them.
const std::vector<bool>& active_characters() {
  static const std::vector<bool> table = [] {
    std::vector<bool> active(kUnicodeSize);
    std::array<utf8proc_int32_t, 32> parts{};
    for (uint32_t code = kFirstActive; code < kUnicodeSize; ++code) {
      const auto character = static_cast<utf8proc_int32_t>(code);
      if (utf8proc_get_property(character)->combining_class != 0) active[code] = true;
      int boundary = 0;
      const auto length = utf8proc_decompose_char(character, parts.data(), parts.size(),
                                                  static_cast<utf8proc_option_t>(UTF8PROC_DECOMPOSE), &boundary);
      if (length == 1 && parts[0] != character) active[code] = true;
      // What follows in a decomposition can join what precedes it. What decomposes into two may also be one that NFC
      // leaves decomposed.
      for (utf8proc_ssize_t i = 1; i < length; ++i) active[static_cast<size_t>(parts[static_cast<size_t>(i)])] = true;
      if (length > 1) {
        const auto joined = utf8proc_normalize_utf32(parts.data(), length, UTF8PROC_COMPOSE);
        if (joined != 1 || parts[0] != character) active[code] = true;
      }
    }
    return active;
  }();
  return table;
}

void append_nfc(std::string_view run, std::string& out) {
  utf8proc_uint8_t* composed = nullptr;
  const auto length =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(run.data()), static_cast<utf8proc_ssize_t>(run.size()),
                   &composed, static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, decltype(&std::free)> owner(composed, std::free);
  if (length == UTF8PROC_ERROR_NOMEM) throw std::bad_alloc();
  PRISM_CHECK(length >= 0, "tokenizer", "expected text that has a normalization form C; found: {}; cut the text.",
              utf8proc_errmsg(length));
  out.append(reinterpret_cast<const char*>(composed), static_cast<size_t>(length));
}

}  // namespace

std::string to_nfc(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  size_t done = 0;      // up to here the text is in `out`
  size_t previous = 0;  // start of the character before `at`
  for (size_t at = 0; at < text.size();) {
    const Character character = decode_character(text, at);
    if (character.code < kFirstActive || !active_characters()[character.code]) {
      previous = at;
      at += character.length;
      continue;
    }
    // The character before may be joined with this one; the next inactive one is independent of what precedes it.
    size_t end = at;
    while (end < text.size()) {
      const Character next = decode_character(text, end);
      if (next.code < kFirstActive || !active_characters()[next.code]) break;
      end += next.length;
    }
    const size_t begin = std::max(previous, done);
    out += text.substr(done, begin - done);
    append_nfc(text.substr(begin, end - begin), out);
    done = previous = at = end;
  }
  out += text.substr(done);
  return out;
}

}  // namespace prism
