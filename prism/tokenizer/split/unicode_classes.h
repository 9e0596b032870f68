// The character class of each code point, for the pre-tokenizer's scanners.
//
//   const uint8_t* classes = character_classes();
//   if (classes[decode_character(text, at).code] & kLetter) ...
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace prism {

/// Bit flags. Letters: category L. Numbers: category N. Spaces: White_Space. Word characters: \w for added tokens.
enum CharacterClass : uint8_t { kLetter = 1, kNumber = 2, kSpace = 4, kWordCharacter = 8 };

/// [0x110000] the flags of every code point, in the Unicode version of Hugging Face's tokenizers (see
/// make_unicode_classes.py).
const uint8_t* character_classes();

struct Character {
  uint32_t code;
  uint32_t length;  ///< in bytes
};

/// The character at text[at]; the text must be well-formed UTF-8 and `at` the start of a character.
inline Character decode_character(std::string_view text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(text[at + i])); };
  const uint32_t lead = byte(0);
  if (lead < 0x80) return {lead, 1};
  if (lead < 0xE0) return {(lead & 0x1F) << 6 | (byte(1) & 0x3F), 2};
  if (lead < 0xF0) return {(lead & 0x0F) << 12 | (byte(1) & 0x3F) << 6 | (byte(2) & 0x3F), 3};
  return {(lead & 0x07) << 18 | (byte(1) & 0x3F) << 12 | (byte(2) & 0x3F) << 6 | (byte(3) & 0x3F), 4};
}

/// Start of the character that ends at text[end - 1]; `end` must be at least 1.
inline size_t previous_character(std::string_view text, size_t end) {
  do --end;
  while (end > 0 && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80);
  return end;
}

}  // namespace prism
