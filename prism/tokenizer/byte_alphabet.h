// The 256 printable characters that represent bytes in a byte-level vocabulary: space is Ġ, newline is Ċ.
//
//   byte_character(' ')          // "Ġ"
//   bytes_of_spelling("Ġthe")    // " the"
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace prism {

/// The UTF-8 character that represents `byte`. The printable bytes of Latin-1 represent themselves; the other 68 are
/// U+0100, U+0101, ... in order.
/// Source: Radford et al. 2019 (GPT-2), whose vocabularies are files of printable text.
const std::string& byte_character(uint8_t byte);

/// All bytes, ordered by the code points that represent them: `!` first, soft hyphen (U+0143) last.
const std::array<uint8_t, 256>& bytes_in_alphabet_order();

/// The bytes that a text of these characters represents; std::nullopt if `spelling` has a character outside the
/// alphabet.
std::optional<std::string> bytes_of_spelling(std::string_view spelling);

}  // namespace prism
