// The tokens of single bytes or characters, from which merging starts, and where merging never crosses.
//
//   table.append(piece, symbols);                    // a token of each byte, or of each character
//   size_t end = table.piece_end(text, begin);       // no merge joins what is before `end` and what is after it
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/tokenizer/bpe/bpe_model.h"

namespace prism {

class SymbolTable {
 public:
  SymbolTable() = default;
  /// Every byte is a symbol.
  explicit SymbolTable(const std::array<int32_t, 256>& byte_ids) : byte_ids_(byte_ids) {}

  /// The token of a single character.
  struct CharacterToken {
    uint32_t code;
    int32_t id;
  };
  /// Every character is a symbol. A character without a token is the tokens of its bytes.
  /// @param marks_spaces  spaces are read as U+2581, so that the text need not be rewritten.
  /// @param split         a piece begins at each U+2581, even if merges would join it to what precedes it.
  SymbolTable(const std::array<int32_t, 256>& byte_ids, std::span<const CharacterToken> characters, bool marks_spaces,
              bool split);

  /// Says that a merge joins a token that ends in the character `left` to one that begins with `right`. To be called
  /// for every merge before the first piece_end().
  void join(uint32_t left, uint32_t right);
  /// Says that merges may join any characters: all of a text is one piece.
  void join_all() { all_joined_ = true; }

  bool by_characters() const { return !ids_.empty(); }
  int32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }

  /// Appends the symbols of `text`, which for a table of characters must be well-formed UTF-8.
  void append(std::string_view text, std::vector<int32_t>& symbols) const;

  /// For a table of characters: the smallest end after `begin` such that no merge joins the characters on its sides.
  /// The ids of a text are those of its pieces.
  size_t piece_end(std::string_view text, size_t begin) const;
  /// Whether the first character of `text` may be joined to a marker before it.
  bool joins_marker(std::string_view text) const;

 private:
  static constexpr int kJoinBits = 18;

  uint32_t code_at(std::string_view text, size_t at, size_t& length) const;
  bool joined(uint32_t left, uint32_t right) const;
  static size_t join_slot(uint32_t left, uint32_t right);

  std::array<int32_t, 256> byte_ids_{};
  std::vector<int32_t> ids_;  // by code point, -1 for none; empty for a table of bytes
  bool marks_spaces_ = false, split_ = false, all_joined_ = false;
  std::vector<uint64_t> joins_;                             // bits by join_slot(); may say yes where no merge joins
  std::array<std::array<uint64_t, 2>, 128> ascii_joins_{};  // the same for two ASCII characters, exact
};

}  // namespace prism
