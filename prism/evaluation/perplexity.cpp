#include "prism/evaluation/perplexity.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <span>
#include <vector>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/generation/scorer.h"

namespace prism {
namespace {

/// Tokens whose hidden states are in memory together.
constexpr int64_t kBatchTokens = 4096;
constexpr const char* kOperation = "perplexity";

/// As many of the windows as are scored together.
std::span<const TextWindow> next_batch(std::span<const TextWindow> rest) {
  size_t count = 0;
  for (int64_t tokens = 0; count < rest.size(); ++count) {
    tokens += rest[count].window.length;
    if (count > 0 && tokens > kBatchTokens) break;
  }
  return rest.first(count);
}

/// Scores windows and adds their losses to those of their documents. @return  the sum over the windows.
DocumentScore score_batch(Scorer& scorer, const std::vector<int32_t>& tokens, std::span<const TextWindow> windows,
                          const Scorer::OnStep& on_step, std::vector<DocumentScore>& scores) {
  std::vector<ScoreRequest> requests;
  for (const auto& each : windows) requests.push_back(score_request(tokens, each));
  const auto found = scorer.score(requests, on_step);
  DocumentScore all;
  for (size_t i = 0; i < windows.size(); ++i)
    for (auto* score : {&all, &scores[windows[i].document]})
      score->nats -= found[i].log_likelihood, score->tokens += requests[i].predictions();
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
  Scorer scorer(decoder, {.prefill = prefill});
  const auto on_step = [](int64_t) { check_not_stopped(kOperation); };
  for (std::span<const TextWindow> rest(windows); !rest.empty();) {
    const auto batch = next_batch(rest);
    const auto cost = score_batch(scorer, text.tokens, batch, on_step, scores);
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
