// Tokens that are split off before anything else: `<|endoftext|>`, chat markers, words added by users.
//
//   AddedTokenMatcher matcher(tokens);
//   matcher.split(text, SpecialTokens::parse, [&](std::string_view part, const AddedToken* token) { ... });
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// One row of `added_tokens` in a `tokenizer.json`.
struct AddedToken {
  int32_t id = 0;
  std::string content;
  bool special = false;      ///< omitted when decoding with skip_special
  bool single_word = false;  ///< matches only if no word character is next to it
  bool lstrip = false;       ///< also consumes the white space before it
  bool rstrip = false;       ///< also consumes the white space after it
  bool normalized = false;   ///< normalized and searched after the others, in the normalized text between them
};

/// Finds added tokens: the leftmost first, and the longest of those that start at the same position.
class AddedTokenMatcher {
 public:
  /// split() calls this for each part of the text in turn. `token` is nullptr for text between tokens.
  using Visit = std::function<void(std::string_view part, const AddedToken* token)>;

  /// A token and the text that is searched for, which differs from its content if that is normalized.
  struct Row {
    std::string text;
    const AddedToken* token;
  };

  AddedTokenMatcher() = default;
  /// @param rows  the tokens are not copied and must outlive the matcher. Rows without text are never found.
  explicit AddedTokenMatcher(const std::vector<Row>& rows);

  bool empty() const { return nodes_.size() <= 1; }

  /// @param text  well-formed UTF-8.
  void split(std::string_view text, SpecialTokens special, const Visit& visit) const;

 private:
  struct Node {
    std::vector<std::pair<char, uint32_t>> children;
    const AddedToken* token = nullptr;
    size_t depth = 0;  // bytes from the beginning of the token
  };

  size_t find_start(std::string_view text, size_t from) const;
  const Node* longest_at(std::string_view text, size_t at) const;

  std::vector<Node> nodes_;
  std::array<uint32_t, 256> roots_{};  // node of each first byte, 0 if there is none
  int only_first_ = -1;                // the first byte if all tokens share it, else -1
};

}  // namespace prism
