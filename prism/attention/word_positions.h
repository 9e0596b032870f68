// Positions in words, which some features of queries and keys turn with (RotaryConfig::word_dims).
#pragma once

#include <torch/types.h>

namespace prism {

/// The position of each token in its word, int64 [B, T]: 0 at a token that starts a word, else one more than at the
/// token before it. A row's first token is at its `opening` if it continues a word.
///
/// @param tokens_BT  int64 ids below V.
/// @param starts_V   bool, true for tokens that start a word (Tokenizer::word_starts()).
/// @param opening_B  int64, number of tokens before each row that belong to the word it may open in; undefined: 0.
/// Source: Prisma (word-position rotary embedding), `marker` rule.
torch::Tensor word_positions(const torch::Tensor& tokens_BT, const torch::Tensor& starts_V,
                             const torch::Tensor& opening_B);

}  // namespace prism
