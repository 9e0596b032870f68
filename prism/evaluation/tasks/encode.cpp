#include "prism/evaluation/tasks/encode.h"

#include <algorithm>
#include <string>

#include "prism/core/error.h"
#include "prism/evaluation/tasks/row_values.h"
#include "prism/evaluation/text_windows.h"
#include "prism/evaluation/windows.h"
#include "prism/template/library/text_pieces.h"

namespace prism {
namespace {

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

EncodedQuery encode_query(const Tokenizer& tokenizer, const TaskQuery& query, int64_t context) {
  const size_t kept = jinja::stripped(query.context, nullptr, false, true).size();
  const std::string before = query.context.substr(0, kept),
                    continuation = query.context.substr(kept) + query.continuation;
  ScoreRequest request;
  if (before.empty()) {
    request.tokens = tokenizer.encode(continuation);
    const int32_t opening = opening_of(tokenizer);
    if (request.tokens.empty() || request.tokens.front() != opening)
      request.tokens.insert(request.tokens.begin(), opening);
    request.scored_from = 1;
  } else {
    // The context's own tokens, also where it and the continuation together have others.
    request.tokens = encode_text(tokenizer, before);
    request.scored_from = std::ssize(request.tokens);
    const auto whole = encode_text(tokenizer, before + continuation);
    const auto rest = std::min(std::ssize(whole), request.scored_from);
    request.tokens.insert(request.tokens.end(), whole.begin() + rest, whole.end());
  }
  PRISM_CHECK(request.predictions() > 0, kEvaluation,
              "expected a continuation of at least one token; found none in \"{}\"; correct the row.", continuation);
  const int64_t cut = std::max<int64_t>(0, std::ssize(request.tokens) - context - 1);
  request.tokens.erase(request.tokens.begin(), request.tokens.begin() + cut);
  request.scored_from = std::max<int64_t>(1, request.scored_from - cut);
  return {{std::move(request)}, cut};
}

EncodedQuery encode_rolling(const Tokenizer& tokenizer, std::string_view text, int64_t context) {
  auto tokens = encode_text(tokenizer, text);
  tokens.insert(tokens.begin(), opening_of(tokenizer));
  EncodedQuery encoded;
  // Token i is predicted from those before it; token 0 opens the text.
  for (int64_t predicted = 1; predicted < std::ssize(tokens);) {
    const int64_t end = std::min(predicted + context, std::ssize(tokens));
    const int64_t begin = std::max<int64_t>(0, end - context - 1);
    encoded.requests.push_back(
        {.tokens = {tokens.begin() + begin, tokens.begin() + end}, .scored_from = predicted - begin});
    predicted = end;
  }
  return encoded;
}

EncodedQuery encode_halves(const Tokenizer& tokenizer, std::string_view text) {
  auto tokens = tokenizer.encode(text, SpecialTokens::as_text);
  const auto& special = tokenizer.special_ids();
  const bool opens = special.opens_prompts && special.opening;
  if (opens) tokens.insert(tokens.begin(), *special.opening);
  PRISM_CHECK(std::ssize(tokens) >= kHalvesWindow, kEvaluation,
              "expected a text of at least {} tokens; found {}; name a longer one.", kHalvesWindow, tokens.size());
  EncodedQuery encoded;
  for (auto first = tokens.begin(); tokens.end() - first >= kHalvesWindow; first += kHalvesWindow) {
    if (opens) *first = *special.opening;
    encoded.requests.push_back({.tokens = {first, first + kHalvesWindow}, .scored_from = kHalvesWindow / 2 + 1});
  }
  return encoded;
}

EncodedQuery encode_windows(const Tokenizer& tokenizer, std::string_view text, int64_t window, int64_t stride,
                            const std::vector<uint8_t>& word_starts) {
  auto tokens = tokenizer.encode(text, SpecialTokens::as_text);
  if (const auto opening = tokenizer.special_ids().opening) tokens.insert(tokens.begin(), *opening);
  EncodedQuery encoded;
  for (const auto& each : cut_windows(0, std::ssize(tokens), window, stride))
    encoded.requests.push_back(score_request(tokens, {each}, word_starts));
  return encoded;
}

}  // namespace prism
