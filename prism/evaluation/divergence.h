// How far a model's distributions of the next token are from those of a reference, as when its weights are quantised.
//
//   auto result = evaluate_divergence(reference.decoder, model.decoder, *model.tokenizer, text, {}, torch::kChar);
//   fmt::print("{:.4f} nats in prompts, {:.4f} decoded", result.prompt.mean, result.decoded.mean);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/evaluation/text_windows.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// What the task adds to TextWindowOptions.
struct DivergenceOptions {
  TextWindowOptions windows = {};
  int64_t skip = 0, tokens = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("skip", skip, "divergence: the first N predictions of every window do not count, because they see few tokens");
    v("tokens", tokens, "divergence: read only the first N tokens of the text; 0: all");
  }
};

/// Of each row of logits, on the CPU.
struct RowDivergences {
  torch::Tensor nats_N;      ///< float64
  torch::Tensor same_top_N;  ///< bool: both have the same likeliest token
};

/// KL(p || q) = sum_v p_v (log p_v - log q_v) of each row, p the reference's distribution and q the other.
///
/// Logits are taken in float32 (float64 for float64). Logarithms of sums are float64, so that the error of a small
/// divergence is near 1e-7 nats; equal logits give exactly 0.
/// @param reference_NV, logits_NV  of one shape and device.
RowDivergences row_divergences(const torch::Tensor& reference_NV, const torch::Tensor& logits_NV);

/// Of some predictions, in nats.
struct DivergenceFigures {
  double mean = 0;
  double standard_error = 0;  ///< of the mean, with the predictions taken as independent
  double median = 0, p90 = 0, p99 = 0, p999 = 0, maximum = 0;
  double same_top = 0;  ///< share of predictions for which both have the same likeliest token
};

struct DivergenceResult {
  DivergenceFigures prompt;   ///< windows are read as prompts
  DivergenceFigures decoded;  ///< windows are read token by token
  int64_t tokens = 0;         ///< predictions that count, the same for both
  int64_t documents = 0, windows = 0;
  int64_t window = 0, stride = 0, skip = 0;  ///< with defaults filled in
  int64_t chunk = 0;                         ///< tokens of a prompt computed at once; 0: whole windows

  /// How the figures are computed, one sentence per convention; shown with the figures.
  std::vector<std::string> conventions() const;
};

struct DivergenceProgress {
  int64_t tokens = 0, tokens_total = 0;  ///< read by either model; every window is read three times
  double mean = 0;                       ///< of decoded predictions so far; 0 before the first
};

/// Reads the same windows with both models. The reference reads them as prompts, densely and with a cache of its
/// compute dtype. The model reads them as prompts, whose logits are those that perplexity scores
/// (LanguageModelHead::scored_logits()), and once more token by token from the window's first on, with the products,
/// attention and head of decoding. Documents and their opening tokens are as in evaluate_perplexity(). At most 256 rows
/// of logits are in memory.
///
/// @param reference    e.g. the same model in float32.
/// @param cache_type   of the model's keys and values (EngineOptions).
/// @param on_progress  if given, called after every step.
/// @param prefill      how the model reads prompts, and in what chunks; null: dense, whole windows.
/// @throws InputError for head budgets, which decide by a prompt that decoding does not have; vocabularies of different
///         sizes; a text without predictions that count; a negative skip or number of tokens; and as
///         evaluate_perplexity(). FailedError for a divergence that is not finite, or at SIGINT or SIGTERM.
DivergenceResult evaluate_divergence(const Decoder& reference, const Decoder& model, const Tokenizer& tokenizer,
                                     TextSource& text, const DivergenceOptions& options,
                                     std::optional<torch::ScalarType> cache_type,
                                     const std::function<void(const DivergenceProgress&)>& on_progress = {},
                                     Prefill* prefill = nullptr);

}  // namespace prism
