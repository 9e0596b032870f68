#include "prism/tokenizer/split/stand_ins.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

/// Code points from first to last, and what stands for each of them.
struct StandIn {
  uint32_t first, last, code;
};

#include "prism/tokenizer/split/stand_ins.inc"

constexpr uint32_t kPage = 64;                            ///< code points that are looked up together
constexpr uint8_t kThreeBytes = 0xE0, kFourBytes = 0xF0;  ///< lead bytes of longer characters are no smaller

/// Which pages have a character with a stand-in: nearly none of those in use.
const std::array<bool, 0x110000 / kPage>& pages_with_stand_ins() {
  static const auto pages = [] {
    std::array<bool, 0x110000 / kPage> found{};
    for (const StandIn& row : kStandIns) std::fill(&found[row.first / kPage], &found[row.last / kPage] + 1, true);
    return found;
  }();
  return pages;
}

/// 0 if the character has no stand-in.
uint32_t stand_in_of(uint32_t code) {
  const StandIn* row = std::lower_bound(std::begin(kStandIns), std::end(kStandIns), code,
                                        [](const StandIn& entry, uint32_t wanted) { return entry.last < wanted; });
  return row != std::end(kStandIns) && row->first <= code ? row->code : 0;
}

/// The first byte at or after `at` that begins a character of three or four bytes; the end of the text if there is
/// none.
size_t next_long_character(std::string_view text, size_t at) {
  // Eight bytes at once: such a byte has its three upper bits set.
  for (uint64_t bytes = 0; at + sizeof bytes <= text.size(); at += sizeof bytes) {
    std::memcpy(&bytes, text.data() + at, sizeof bytes);
    if ((bytes & bytes << 1 & bytes << 2 & 0x8080808080808080) != 0) break;
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < kThreeBytes) ++at;
  return at;
}

/// Overwrites a character of `length` bytes, 3 or 4.
void write_character(char* bytes, uint32_t length, uint32_t code) {
  for (uint32_t i = length - 1; i > 0; --i, code >>= 6) bytes[i] = static_cast<char>(0x80 | (code & 0x3F));
  bytes[0] = static_cast<char>((length == 3 ? kThreeBytes : kFourBytes) | code);
}

}  // namespace

std::optional<std::string> with_stand_ins(std::string_view text) {
  const auto& pages = pages_with_stand_ins();
  std::optional<std::string> result;
  for (size_t at = 0; at < text.size();) {
    if (static_cast<uint8_t>(text[at]) < kThreeBytes) {
      at = next_long_character(text, at);
      continue;
    }
    const auto [code, length] = decode_character(text, at);
    const uint32_t stand_in = pages[code / kPage] ? stand_in_of(code) : 0;
    if (stand_in != 0) {
      if (!result) result.emplace(text);
      write_character(result->data() + at, length, stand_in);
    }
    at += length;
  }
  return result;
}

}  // namespace prism
