#include "prism/tokenizer/normalize/nfc.h"

#include <utf8proc.h>

#include <algorithm>
#include <array>
#include <vector>

#include "prism/core/error.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

constexpr uint32_t kUnicodeSize = 0x110000;
constexpr uint32_t kFirstActive = 0x300;  // no smaller character is changed by NFC or joins the one before it
constexpr utf8proc_ssize_t kMostParts = 32;
constexpr auto kComposition = static_cast<utf8proc_option_t>(UTF8PROC_COMPOSE | UTF8PROC_STABLE);

/// [kUnicodeSize] true for characters that NFC may change, move, or join to the one before them.
const std::vector<bool>& active_characters() {
  static const std::vector<bool> table = [] {
    std::vector<bool> active(kUnicodeSize);
    std::array<utf8proc_int32_t, kMostParts> parts{};
    for (uint32_t code = kFirstActive; code < kUnicodeSize; ++code) {
      const auto character = static_cast<utf8proc_int32_t>(code);
      if (utf8proc_get_property(character)->combining_class != 0) active[code] = true;
      int boundary = 0;
      const auto length = utf8proc_decompose_char(character, parts.data(), kMostParts, UTF8PROC_DECOMPOSE, &boundary);
      if (length == 1 && parts[0] != character) active[code] = true;
      // What follows in a decomposition can join what precedes it. What decomposes into two may also be one that NFC
      // leaves decomposed.
      for (utf8proc_ssize_t i = 1; i < length; ++i) active[static_cast<size_t>(parts[static_cast<size_t>(i)])] = true;
      if (length > 1) {
        const auto joined = utf8proc_normalize_utf32(parts.data(), length, kComposition);
        if (joined != 1 || parts[0] != character) active[code] = true;
      }
    }
    return active;
  }();
  return table;
}

uint8_t combining_class(utf8proc_int32_t code) {
  return static_cast<uint8_t>(utf8proc_get_property(code)->combining_class);
}

/// Orders each run of marks by their classes. The library's own ordering takes quadratic time.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  const auto is_mark = [](utf8proc_int32_t code) { return combining_class(code) != 0; };
  for (auto begin = codes.begin(); begin != codes.end();) {
    begin = std::find_if(begin, codes.end(), is_mark);
    const auto end = std::find_if_not(begin, codes.end(), is_mark);
    std::stable_sort(begin, end, [](auto a, auto b) { return combining_class(a) < combining_class(b); });
    begin = end;
  }
}

void append_nfc(std::string_view run, std::string& out) {
  std::vector<utf8proc_int32_t> codes;
  std::array<utf8proc_int32_t, kMostParts> parts{};
  for (size_t at = 0; at < run.size();) {
    const Character character = decode_character(run, at);
    at += character.length;
    int boundary = 0;
    const auto length = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(character.code), parts.data(), kMostParts,
                                                UTF8PROC_DECOMPOSE, &boundary);
    PRISM_ASSERT(length >= 0 && length <= kMostParts, "tokenizer", "expected at most {} parts of U+{:04X}; found {}.",
                 kMostParts, character.code, length);
    codes.insert(codes.end(), parts.begin(), parts.begin() + length);
  }
  order_marks(codes);
  const auto length = utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kComposition);
  std::array<utf8proc_uint8_t, 4> bytes{};
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    const auto size = utf8proc_encode_char(codes[static_cast<size_t>(i)], bytes.data());
    out.append(reinterpret_cast<const char*>(bytes.data()), static_cast<size_t>(size));
  }
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
