#include "prism/evaluation/tasks/encode.h"

#include <algorithm>
#include <string>

#include "prism/core/error.h"
#include "prism/core/stop.h"
#include "prism/data/pieces.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/text_windows.h"
#include "prism/template/library/text_pieces.h"

namespace prism {
namespace {

/// Bytes of a text that are encoded together.
constexpr size_t kPieceBytes = size_t{1} << 20;

/// The token that stands before texts without a context, as in the harness: the tokenizer's own bos_token, else its
/// eos_token. That of the model's generation_config.json does not count.
int32_t opening_of(const Tokenizer& tokenizer) {
  const auto& named = tokenizer.settings().special_tokens;
  for (const char* name : {"bos_token", "eos_token"})
    if (const auto token = named.find(name); token != named.end())
      if (const auto id = tokenizer.find(token->second)) return *id;
  const auto& special = tokenizer.special_ids();
  PRISM_CHECK(special.opening || !special.ends.empty(), kEvaluation,
              "expected a tokenizer with a token that opens or ends texts; found none; name one in "
              "tokenizer_config.json.");
  return special.opening ? *special.opening : special.ends.front();
}

/// A text as transformers encodes it by default.
std::vector<int32_t> encode_text(const Tokenizer& tokenizer, std::string_view text) {
  auto ids = tokenizer.encode(text);
  const auto& special = tokenizer.special_ids();
  if (special.opens_prompts && special.opening && !text.starts_with(tokenizer.bytes(*special.opening)))
    ids.insert(ids.begin(), *special.opening);
  return ids;
}

}  // namespace

ScoreRequest EncodedQuery::request(size_t window, const std::vector<uint8_t>& word_starts) const {
  auto made = score_request(tokens, {windows.at(window)}, word_starts);
  made.budget_tokens = made.scored_from - made.unread;
  return made;
}

EncodedQuery encode_query(const Tokenizer& tokenizer, const TaskQuery& query, int64_t context) {
  const size_t kept = jinja::stripped(query.context, nullptr, false, true).size();
  const std::string before = query.context.substr(0, kept),
                    continuation = query.context.substr(kept) + query.continuation;
  EncodedQuery encoded;
  auto& tokens = encoded.tokens;
  int64_t scored_from = 1;
  if (before.empty()) {
    tokens = tokenizer.encode(continuation);
    const int32_t opening = opening_of(tokenizer);
    if (tokens.empty() || tokens.front() != opening) tokens.insert(tokens.begin(), opening);
  } else {
    // The context's own tokens, also where it and the continuation together have others.
    tokens = encode_text(tokenizer, before);
    scored_from = std::ssize(tokens);
    const auto whole = encode_text(tokenizer, before + continuation);
    const auto rest = std::min(std::ssize(whole), scored_from);
    tokens.insert(tokens.end(), whole.begin() + rest, whole.end());
  }
  PRISM_CHECK(std::ssize(tokens) > scored_from, kEvaluation,
              "expected a continuation of at least one token; found none in \"{}\"; correct the row.", continuation);
  encoded.cut = std::max<int64_t>(0, std::ssize(tokens) - context - 1);
  encoded.windows = {{.begin = encoded.cut,
                      .length = std::ssize(tokens) - encoded.cut - 1,
                      .counted_from = std::max<int64_t>(1, scored_from - encoded.cut) - 1}};
  return encoded;
}

EncodedQuery encode_rolling(const Tokenizer& tokenizer, std::string_view text, int64_t context) {
  EncodedQuery encoded{.tokens = encode_text(tokenizer, text), .windows = {}};
  auto& tokens = encoded.tokens;
  tokens.insert(tokens.begin(), opening_of(tokenizer));
  // Token i is predicted from those before it; token 0 opens the text.
  for (int64_t predicted = 1; predicted < std::ssize(tokens);) {
    const int64_t end = std::min(predicted + context, std::ssize(tokens));
    const int64_t begin = std::max<int64_t>(0, end - context - 1);
    encoded.windows.push_back({.begin = begin, .length = end - begin - 1, .counted_from = predicted - begin - 1});
    predicted = end;
  }
  return encoded;
}

EncodedQuery encode_halves(const Tokenizer& tokenizer, std::string_view text) {
  EncodedQuery encoded{.tokens = tokenizer.encode(text, SpecialTokens::as_text), .windows = {}};
  auto& tokens = encoded.tokens;
  const auto& special = tokenizer.special_ids();
  const bool opens = special.opens_prompts && special.opening;
  if (opens) tokens.insert(tokens.begin(), *special.opening);
  PRISM_CHECK(std::ssize(tokens) >= kHalvesWindow, kEvaluation,
              "expected a text of at least {} tokens; found {}; name a longer one.", kHalvesWindow, tokens.size());
  for (int64_t begin = 0; std::ssize(tokens) - begin >= kHalvesWindow; begin += kHalvesWindow) {
    if (opens) tokens[static_cast<size_t>(begin)] = *special.opening;
    encoded.windows.push_back({.begin = begin, .length = kHalvesWindow - 1, .counted_from = kHalvesWindow / 2});
  }
  return encoded;
}

EncodedQuery encode_windows(const Tokenizer& tokenizer, std::string_view text, int64_t window, int64_t stride) {
  EncodedQuery encoded;
  for (bool first = true; first || !text.empty(); first = false) {
    check_not_stopped(kEvaluation);
    const auto piece = text.substr(0, piece_length(text, kPieceBytes));
    append_piece(encoded.tokens, tokenizer, piece, first);
    text.remove_prefix(piece.size());
  }
  encoded.windows = cut_windows(0, std::ssize(encoded.tokens), window, stride);
  return encoded;
}

}  // namespace prism
