// How likely a model finds continuations: many of them together, and what they have in common computed once.
//
//   Scorer scorer(model.decoder);
//   const auto scores = scorer.score(std::vector{ScoreRequest{.tokens = ids, .scored_from = context_tokens}});
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "prism/generation/engine.h"

namespace prism {

/// A text whose tokens from `scored_from` on are predicted, each from the tokens before it.
struct ScoreRequest {
  std::vector<int32_t> tokens;  ///< the last one is predicted only, so that a context needs room for one less
  int64_t scored_from = 1;      ///< at least unread + 1; at most all tokens, which leaves nothing to predict
  int64_t unread = 0;           ///< first tokens that are not read, but may hold the beginning of a word
  int64_t budget_tokens = 0;    ///< as EngineRequest::budget_tokens
  bool decodes = false;         ///< reads one token at a time, with the kernels of decoding

  int64_t predictions() const { return std::ssize(tokens) - scored_from; }
};

/// Predictions of all requests.
int64_t count_predictions(std::span<const ScoreRequest> requests);

/// What was found about the tokens from `scored_from` on.
struct Score {
  double log_likelihood = 0;  ///< sum of the natural logarithms of their probabilities
  bool is_greedy = true;      ///< no other token is likelier than any of them
};

class Scorer {
 public:
  /// @param engine  `sequences` is not used: as many are computed together as have 128 pages of keys and values.
  /// @throws InputError as Engine.
  explicit Scorer(Decoder decoder, EngineOptions engine = {});

  /// Called with the number of tokens that a step has computed.
  using OnStep = std::function<void(int64_t)>;

  /// Scores each request as if it were alone. Those that begin alike share the keys and values of what they have in
  /// common, but not with a selector or head budgets, which read whole prompts. Logits are computed for the tokens that
  /// are scored, and only for them. Logarithms are float32, their sum is float64.
  /// @throws InputError for a request that the context has no room for.
  std::vector<Score> score(std::span<const ScoreRequest> requests, const OnStep& on_step = {});
  /// The hidden states from which those tokens are predicted, [predictions, d_model]: those of the first request, then
  /// those of the next. All of them are in memory.
  torch::Tensor hidden(std::span<const ScoreRequest> requests, const OnStep& on_step = {});
  /// The scores from these hidden states.
  std::vector<Score> scores_of(std::span<const ScoreRequest> requests, const torch::Tensor& hidden_ND) const;

 private:
  Decoder decoder_;
  Engine engine_;
};

}  // namespace prism
