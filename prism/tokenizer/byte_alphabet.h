// The 256 printable characters that stand for bytes in a byte-level vocabulary: space is written Ġ, newline Ċ.
//
//   spell_bytes(" the")          // "Ġthe"
//   bytes_of_spelling("Ġthe")    // " the"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prism {

/// The UTF-8 character that stands for `byte`. The printable bytes of Latin-1 stand for themselves, the other 68 are
/// written U+0100, U+0101, ... in their order.
/// Source: Radford et al. 2019 (GPT-2), whose vocabularies are files of printable text.
const std::string& byte_character(uint8_t byte);

/// The bytes in the order of the code points that stand for them: `!` first, soft hyphen (U+0143) last.
const std::array<uint8_t, 256>& bytes_in_alphabet_order();

/// Every byte replaced by its character.
std::string spell_bytes(std::string_view bytes);

/// What spell_bytes() was given, or nothing if `spelling` holds a character outside the alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace prism
