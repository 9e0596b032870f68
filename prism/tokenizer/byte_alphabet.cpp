#include "prism/tokenizer/byte_alphabet.h"

#include <algorithm>
#include <numeric>

namespace prism {
namespace {

constexpr uint32_t kCodePoints = 0x144;  // one above the last character of the alphabet
constexpr uint16_t kNoByte = 256;

struct Alphabet {
  std::array<uint32_t, 256> code_points{};
  std::array<std::string, 256> characters;
  std::array<uint16_t, kCodePoints> bytes{};  // kNoByte for code points that represent no byte
  std::array<uint8_t, 256> order{};

  Alphabet() {
    bytes.fill(kNoByte);
    uint32_t next = 0x100;
    for (uint32_t byte = 0; byte < 256; ++byte) {
      const bool printable = (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD);
      const uint32_t code = printable ? byte : next++;
      code_points[byte] = code;
      bytes[code] = static_cast<uint16_t>(byte);
      if (code < 0x80) {
        characters[byte] = static_cast<char>(code);
      } else {
        characters[byte] = {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
      }
    }
    std::iota(order.begin(), order.end(), static_cast<uint8_t>(0));
    std::sort(order.begin(), order.end(), [&](uint8_t a, uint8_t b) { return code_points[a] < code_points[b]; });
  }
};

const Alphabet& alphabet() {
  static const Alphabet table;
  return table;
}

}  // namespace

const std::string& byte_character(uint8_t byte) {
  return alphabet().characters[byte];
}

const std::array<uint8_t, 256>& bytes_in_alphabet_order() {
  return alphabet().order;
}

std::optional<std::string> bytes_of_spelling(std::string_view spelling) {
  const Alphabet& table = alphabet();
  std::string bytes;
  for (size_t at = 0; at < spelling.size();) {
    uint32_t code = static_cast<uint8_t>(spelling[at++]);
    if (code >= 0x80) {
      // Characters of the alphabet take at most two bytes. Longer ones represent no byte.
      if (code < 0xC2 || code > 0xC5 || at == spelling.size()) return std::nullopt;
      code = (code & 0x1F) << 6 | (static_cast<uint8_t>(spelling[at++]) & 0x3F);
    }
    if (code >= kCodePoints || table.bytes[code] == kNoByte) return std::nullopt;
    bytes += static_cast<char>(table.bytes[code]);
  }
  return bytes;
}

}  // namespace prism
