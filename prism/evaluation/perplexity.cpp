#include "prism/evaluation/perplexity.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <optional>
#include <span>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/models/chunks.h"

namespace prism {
namespace {

/// Tokens scored together: enough for efficient matrix products, few enough to keep the activations small.
constexpr int64_t kBatchTokens = 4096;
constexpr const char* kOperation = "perplexity";

/// Runs windows through a model: as rows of one batch or, with sparse attention or chunks, one window at a time.
class Reader {
 public:
  /// @param prefill  may be null.
  Reader(const Decoder& decoder, int64_t window, Prefill* prefill)
      : decoder_(decoder),
        chunk_(prefill == nullptr ? 0 : prefill->options().chunk),
        is_dense_(prefill == nullptr || prefill->options().selector == "dense") {
    context_.prefill = prefill;
    if (chunk_ == 0) return;
    const auto& config = decoder_->config();
    cache_.emplace(config.layers,
                   KvCacheOptions{.positions = window, .type = decoder_->compute_type(), .device = decoder_->device()});
    context_.cache = &*cache_;
  }
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  int64_t rows(int64_t tokens) const {
    return is_dense_ && chunk_ == 0 ? std::max<int64_t>(1, kBatchTokens / tokens) : 1;
  }
  /// @param prompts_B  int32, tokens of each window that head budgets read.
  /// @param word_opening_B  as in ForwardContext.
  torch::Tensor operator()(const torch::Tensor& tokens_BT, const torch::Tensor& prompts_B,
                           const torch::Tensor& word_opening_B) {
    if (cache_) cache_->truncate(0);
    Budgets budgets(decoder_->config().budget_tau, {.first_row = windows_});
    windows_ += tokens_BT.size(0);
    auto context = context_;
    context.budgets = &budgets;
    context.prompts_B = prompts_B;
    context.word_opening_B = word_opening_B;
    return forward_in_chunks(decoder_, tokens_BT, context, chunk_);
  }

 private:
  Decoder decoder_;
  int64_t chunk_;
  bool is_dense_;
  std::optional<KvCache> cache_;
  ForwardContext context_;
  int64_t windows_ = 0;  ///< read so far
};

/// Scores the counted predictions of a batch of windows, the longest first, and adds them to their documents.
/// @return the sum over the batch.
DocumentScore score_batch(Decoder& decoder, Reader& reader, const std::vector<int32_t>& tokens,
                          std::span<const TextWindow> windows, std::vector<DocumentScore>& scores) {
  const auto rows = static_cast<int64_t>(windows.size()), columns = windows.front().window.length;
  const auto tokens_BT = torch::zeros({rows, columns}, torch::kLong);
  const auto labels_BT = torch::full({rows, columns}, -1, torch::kLong);
  const auto prompts_B = torch::empty({rows}, torch::kInt), word_opening_B = torch::empty({rows}, torch::kLong);
  for (int64_t row = 0; row < rows; ++row) {
    const auto& [window, document, begin] = windows[static_cast<size_t>(row)];
    const auto before =
        std::span(tokens).subspan(static_cast<size_t>(begin), static_cast<size_t>(window.begin - begin));
    const auto first = tokens.begin() + window.begin;
    prompts_B.data_ptr<int32_t>()[row] = static_cast<int32_t>(window.counted_from + 1);
    word_opening_B.data_ptr<int64_t>()[row] = decoder->word_opening(before);
    // Shorter rows are padded at their end, where causal attention hides the padding.
    std::copy(first, first + window.length, tokens_BT.data_ptr<int64_t>() + row * columns);
    std::copy(first + 1 + window.counted_from, first + 1 + window.length,
              labels_BT.data_ptr<int64_t>() + row * columns + window.counted_from);
  }
  const auto hidden_ND = reader(tokens_BT, prompts_B, word_opening_B).flatten(0, 1);
  // The head is a large part of a small model, so positions that are only context skip it.
  const auto counted_N = labels_BT.flatten().ge(0).nonzero().squeeze(1);
  const auto losses = decoder->head
                          .token_losses(hidden_ND.index_select(0, counted_N.to(hidden_ND.device())).unsqueeze(0),
                                        labels_BT.flatten().index_select(0, counted_N).unsqueeze(0))
                          .to(torch::kDouble);
  const double* loss = losses.const_data_ptr<double>();
  DocumentScore all;
  for (const auto& [window, document, begin] : windows) {
    const int64_t count = window.length - window.counted_from;
    const double nats = std::accumulate(loss, loss + count, 0.0);
    loss += count;
    for (auto* score : {&all, &scores[document]}) score->nats += nats, score->tokens += count;
  }
  return all;
}

double perplexity(double nats, int64_t units) {
  return units == 0 ? std::numeric_limits<double>::quiet_NaN() : std::exp(nats / static_cast<double>(units));
}

}  // namespace

double PerplexityResult::token_perplexity() const {
  return perplexity(nats, tokens);
}

double PerplexityResult::word_perplexity() const {
  return perplexity(nats, words);
}

double PerplexityResult::byte_perplexity() const {
  return perplexity(nats, bytes);
}

double PerplexityResult::bits_per_byte() const {
  return nats / (static_cast<double>(bytes) * std::numbers::ln2);
}

std::vector<std::string> PerplexityResult::conventions() const {
  std::string cutting = fmt::format("windows of {} tokens every {}, each token predicted once", window, stride);
  if (!cut) {
    cutting += " (no document is longer than a window)";
  } else if (stride == window) {
    cutting += " (the first prediction of a window sees one token, the last sees the whole window)";
  } else {
    cutting +=
        fmt::format(" (after a document's first window, predictions see {} to {} tokens)", window - stride + 1, window);
  }
  std::vector<std::string> conventions = {cutting,
                                          opening.empty()
                                              ? "a document's first token is not predicted"
                                              : fmt::format("{} opens every document and is not predicted", opening),
                                          "words are separated by white space; bytes are those of the text in UTF-8"};
  if (has_budgets)
    conventions.emplace_back(
        "head budgets read a window's tokens up to the one that makes its first prediction; in a document's first "
        "window that is one token");
  return conventions;
}

PerplexityResult evaluate_perplexity(Decoder decoder, const Tokenizer& tokenizer, TextSource& source,
                                     const TextWindowOptions& wanted,
                                     const std::function<void(const PerplexityProgress&)>& on_progress,
                                     Prefill* prefill) {
  const torch::NoGradGuard no_gradients;
  const bool has_budgets = layers_with_budgets(decoder->config()) > 0;
  const auto options = complete_windows(wanted, decoder->config().context, has_budgets, kOperation);
  const TokenizedText text = tokenize_text(source, tokenizer, {.documents = options.documents}, kOperation);
  const auto windows = cut_text(text, options.window, options.stride, kOperation);
  PerplexityProgress progress;
  for (const int64_t length : text.lengths) progress.tokens_total += std::max<int64_t>(0, length - 1);
  std::vector<DocumentScore> scores(text.lengths.size());
  Reader reader(decoder, options.window, prefill_for(decoder->config(), prefill));
  for (std::span<const TextWindow> rest(windows); !rest.empty();) {
    check_not_stopped(kOperation);
    const auto rows = static_cast<size_t>(reader.rows(rest.front().window.length));
    const auto batch = rest.first(std::min(rows, rest.size()));
    const auto cost = score_batch(decoder, reader, text.tokens, batch, scores);
    progress.nats += cost.nats;
    if (!std::isfinite(progress.nats))
      throw FailedError(
          "perplexity",
          fmt::format("expected finite losses; found {}; the weights are damaged; name another model.", progress.nats));
    progress.tokens += cost.tokens;
    if (on_progress) on_progress(progress);
    rest = rest.subspan(batch.size());
  }
  const auto opening = tokenizer.special_ids().opening;
  return {.nats = progress.nats,
          .tokens = progress.tokens,
          .words = text.words,
          .bytes = text.bytes,
          .documents = std::move(scores),
          .windows = static_cast<int64_t>(windows.size()),
          .window = options.window,
          .stride = options.stride,
          .cut = *std::max_element(text.lengths.begin(), text.lengths.end()) > options.window + 1,
          .has_budgets = has_budgets,
          .opening = opening ? std::string(tokenizer.bytes(*opening)) : ""};
}

}  // namespace prism
