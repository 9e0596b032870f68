// v1: a text of words is cut wherever no merge joins two neighbouring characters, so that most pieces are found in the
// cache. Merging a whole text in one heap, as the definition says, takes a hundred times as long.
#include "prism/tokenizer/bpe/symbol_table.h"

#include <algorithm>

#include "prism/tokenizer/space_marker.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {

SymbolTable::SymbolTable(const std::array<int32_t, 256>& byte_ids, std::span<const CharacterToken> characters,
                         bool marks_spaces, bool split)
    : byte_ids_(byte_ids), marks_spaces_(marks_spaces), split_(split) {
  uint32_t largest = kSpaceMarkerCode;
  for (const auto& character : characters) largest = std::max(largest, character.code);
  ids_.assign(size_t{largest} + 1, -1);
  for (const auto& character : characters) ids_[character.code] = character.id;
  if (marks_spaces) ids_[' '] = ids_[kSpaceMarkerCode];
  joins_.assign(size_t{1} << (kJoinBits - 6), 0);
}

size_t SymbolTable::join_slot(uint32_t left, uint32_t right) {
  const uint64_t pair = uint64_t{left} << 32 | right;
  return static_cast<size_t>(((pair ^ (pair >> 29)) * 0x9E3779B97F4A7C15u) >> (64 - kJoinBits));
}

void SymbolTable::join(uint32_t left, uint32_t right) {
  const size_t slot = join_slot(left, right);
  joins_[slot / 64] |= uint64_t{1} << (slot % 64);
  // A space stands for the marker, which is no ASCII character.
  const auto ascii = [&](uint32_t code) { return marks_spaces_ && code == kSpaceMarkerCode ? ' ' : code; };
  if (ascii(left) < 128 && ascii(right) < 128)
    ascii_joins_[ascii(left)][ascii(right) / 64] |= uint64_t{1} << (ascii(right) % 64);
}

uint32_t SymbolTable::code_at(std::string_view text, size_t at, size_t& length) const {
  const Character character = decode_character(text, at);
  length = character.length;
  return marks_spaces_ && character.code == ' ' ? kSpaceMarkerCode : character.code;
}

bool SymbolTable::joined(uint32_t left, uint32_t right) const {
  if (split_ && right == kSpaceMarkerCode) return false;
  if (all_joined_) return true;
  const size_t slot = join_slot(left, right);
  return (joins_[slot / 64] >> (slot % 64) & 1) != 0;
}

size_t SymbolTable::piece_end(std::string_view text, size_t begin) const {
  size_t length = 0;
  uint32_t left = code_at(text, begin, length);
  bool left_ascii = static_cast<uint8_t>(text[begin]) < 128;
  for (size_t at = begin + length; at < text.size(); at += length) {
    const auto byte = static_cast<uint8_t>(text[at]);
    if (byte < 128 && left_ascii && !all_joined_ && !split_) {
      const auto before = static_cast<uint8_t>(text[at - 1]);
      if ((ascii_joins_[before][byte / 64] >> (byte % 64) & 1) == 0) return at;
      length = 1;
      left = byte == ' ' && marks_spaces_ ? kSpaceMarkerCode : byte;
      continue;
    }
    const uint32_t right = code_at(text, at, length);
    if (!joined(left, right)) return at;
    left = right;
    left_ascii = byte < 128;
  }
  return text.size();
}

bool SymbolTable::joins_marker(std::string_view text) const {
  size_t length = 0;
  return joined(kSpaceMarkerCode, code_at(text, 0, length));
}

void SymbolTable::append(std::string_view text, std::vector<int32_t>& symbols) const {
  if (!by_characters()) {
    // A byte without a token is left out, as in `tokenizers`.
    for (const char byte : text)
      if (const int32_t id = byte_ids_[static_cast<uint8_t>(byte)]; id >= 0) symbols.push_back(id);
    return;
  }
  for (size_t at = 0, length = 0; at < text.size(); at += length) {
    const uint32_t code = code_at(text, at, length);
    const int32_t id = code < ids_.size() ? ids_[code] : -1;
    if (id >= 0) {
      symbols.push_back(id);
      continue;
    }
    // A space that was read as a marker without a token is that marker's three bytes.
    const std::string_view bytes = code == kSpaceMarkerCode ? kSpaceMarker : text.substr(at, length);
    for (const char byte : bytes) symbols.push_back(byte_ids_[static_cast<uint8_t>(byte)]);
  }
}

}  // namespace prism
