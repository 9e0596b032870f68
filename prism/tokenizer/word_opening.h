// Looks back for the word that a text is in.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace prism {

/// The number of tokens back to the last one that starts a word, that one included. std::nullopt if none of them does.
/// @param starts  Tokenizer::word_starts(); ids beyond it continue words.
template <class Id>
std::optional<int64_t> tokens_since_start(std::span<const Id> tokens, const std::vector<uint8_t>& starts) {
  const auto last = std::find_if(tokens.rbegin(), tokens.rend(), [&](Id id) {
    return static_cast<size_t>(id) < starts.size() && starts[static_cast<size_t>(id)] != 0;
  });
  if (last == tokens.rend()) return std::nullopt;
  return last - tokens.rbegin() + 1;
}

}  // namespace prism
