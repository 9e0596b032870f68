// Queries as tokens, cut as lm-evaluation-harness 0.4.13 cuts them.
//
//   const EncodedQuery query = encode_query(tokenizer, {"Question: ...\nAnswer:", " yes"}, config.context);
//   const auto scores = scorer.score(std::vector{query.request(0, model->word_starts())});
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "prism/evaluation/tasks/task.h"
#include "prism/evaluation/windows.h"
#include "prism/generation/scorer.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// A query as tokens, and what of them is scored. Requests are made one by one, because the windows of a book may
/// overlap, and would then need many times the memory of its tokens.
struct EncodedQuery {
  std::vector<int32_t> tokens;
  std::vector<Window> windows;  ///< one; for a text, those that it is cut into
  int64_t cut = 0;              ///< tokens of the beginning that the context has no room for

  /// Budgets are decided by what is read before the first prediction. @param word_starts  as score_request().
  ScoreRequest request(size_t window, const std::vector<uint8_t>& word_starts) const;
};

/// A context with its continuation. White space at the context's end belongs to the continuation. Both are encoded
/// together, and the continuation is what follows as many tokens as the context alone has. Before an empty context
/// stands the token that opens texts, else the one that ends them; before others it stands if the tokenizer's files say
/// so. Special tokens that are spelled in the text are parsed.
/// @param context  of the model, in tokens: of longer queries the last context + 1 tokens are kept.
/// @throws InputError for a tokenizer without a token that opens or ends texts, and for an empty continuation.
EncodedQuery encode_query(const Tokenizer& tokenizer, const TaskQuery& query, int64_t context);

/// A whole text after the token that opens texts, in windows of `context` tokens that predict each token once. The last
/// window begins early enough to be whole.
EncodedQuery encode_rolling(const Tokenizer& tokenizer, std::string_view text, int64_t context);

/// Tokens of a window of encode_halves().
constexpr int64_t kHalvesWindow = 512;

/// A whole text in windows of 512 tokens, of which the second half is predicted, without its first token; a rest is
/// left out. If the tokenizer's files open texts with a token, it takes the place of each window's first one. Special
/// tokens that are spelled in the text stay text. Source: llama-perplexity of llama.cpp, with its defaults.
/// @throws InputError for a text of fewer than 512 tokens.
EncodedQuery encode_halves(const Tokenizer& tokenizer, std::string_view text);

/// A document in windows, cut as in evaluation/windows.h. If the tokenizer has an opening token, it precedes the
/// document, as in training; otherwise the document's first token is not predicted. Special tokens that are spelled in
/// the text stay text. @throws FailedError at SIGINT or SIGTERM (core/stop.h).
EncodedQuery encode_windows(const Tokenizer& tokenizer, std::string_view text, int64_t window, int64_t stride);

}  // namespace prism
