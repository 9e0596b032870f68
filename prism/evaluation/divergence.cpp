#include "prism/evaluation/divergence.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/stop.h"
#include "prism/core/text/counted.h"
#include "prism/generation/scorer.h"

namespace prism {
namespace {

constexpr const char* kDivergence = "divergence";
/// Rows of logits computed together.
constexpr int64_t kLogitRows = 256;
/// Windows scored together: enough for decoding to read the weights seldom, few enough for their hidden states.
constexpr int64_t kMostWindows = 32, kMostPositions = 16384;

/// The divergences of one role, prediction by prediction.
struct Divergences {
  std::vector<double> nats;
  double sum = 0;
  int64_t same_top = 0;

  void add(const RowDivergences& rows) {
    const auto* row = rows.nats_N.const_data_ptr<double>();
    nats.insert(nats.end(), row, row + rows.nats_N.numel());
    sum = std::accumulate(row, row + rows.nats_N.numel(), sum);
    same_top += rows.same_top_N.sum().item<int64_t>();
  }

  double mean() const { return nats.empty() ? 0 : sum / static_cast<double>(nats.size()); }
};

DivergenceFigures figures_of(const Divergences& all) {
  const auto mean = statistic(all.nats);
  const auto parts = quantiles(all.nats, {0.5, 0.9, 0.99, 0.999, 1});
  return {.mean = mean.mean,
          .standard_error = mean.standard_error(),
          .median = parts[0],
          .p90 = parts[1],
          .p99 = parts[2],
          .p999 = parts[3],
          .maximum = parts[4],
          .same_top = static_cast<double>(all.same_top) / static_cast<double>(mean.count)};
}

void check_models(const Decoder& reference, const Decoder& model, const DivergenceOptions& options) {
  for (const auto& each : {reference, model})
    PRISM_CHECK(
        layers_with_budgets(each->config()) == 0, kDivergence,
        "expected a model without head budgets, which decide by a prompt that decoded text does not have; found "
        "{} layers with budgets; name another model.",
        layers_with_budgets(each->config()));
  PRISM_CHECK(reference->config().vocab_size == model->config().vocab_size, kDivergence,
              "expected vocabularies of one size; found {} tokens in the reference and {} in the model; compare models "
              "with the same vocabulary.",
              reference->config().vocab_size, model->config().vocab_size);
  for (const auto& [what, value] : {std::pair{"skipped predictions", options.skip}, {"tokens", options.tokens}})
    PRISM_CHECK(value >= 0, kDivergence, "expected 0 or more {}; found {}; change it.", what, value);
}

/// The windows of a text without the predictions that are skipped.
std::vector<TextWindow> counted_windows(const TokenizedText& text, const TextWindowOptions& options, int64_t skip) {
  auto windows = cut_text(text, options.window, options.stride, kDivergence);
  for (auto& each : windows) each.window.counted_from = std::max(each.window.counted_from, skip);
  std::erase_if(windows, [](const TextWindow& each) { return each.window.predictions() <= 0; });
  PRISM_CHECK(
      !windows.empty(), kDivergence,
      "expected windows of more than {} tokens, whose first predictions do not count; found none; change --skip "
      "or name more text.",
      skip);
  return windows;
}

/// Both models with their readers, and what they have found so far.
class ModelPair {
 public:
  ModelPair(const Decoder& reference, const Decoder& model, std::optional<torch::ScalarType> cache_type,
            Prefill* prefill)
      : reference_(reference),
        model_(model),
        scorer_of_reference_(reference),
        scorer_(model, {.prefill = prefill, .cache_type = cache_type}) {}

  void add(const std::vector<int32_t>& tokens, std::span<const TextWindow> windows, const Scorer::OnStep& on_step) {
    std::vector<ScoreRequest> requests;
    for (const auto& each : windows) requests.push_back(score_request(tokens, each, model_->word_starts()));
    const auto reference_ND = scorer_of_reference_.hidden(requests, on_step);
    const auto prompt_ND = scorer_.hidden(requests, on_step);
    for (auto& each : requests) each.decodes = true;
    const auto decoded_ND = scorer_.hidden(requests, on_step);
    for (int64_t first = 0, all = reference_ND.size(0); first < all; first += kLogitRows) {
      check_not_stopped(kDivergence);
      const auto piece = [&](const torch::Tensor& rows_ND) {
        return rows_ND.narrow(0, first, std::min(kLogitRows, all - first));
      };
      const auto reference_NV = reference_->head.scored_logits(piece(reference_ND));
      prompt.add(row_divergences(reference_NV, model_->head.scored_logits(piece(prompt_ND))));
      decoded.add(row_divergences(reference_NV, model_->head.logits(piece(decoded_ND))));
    }
    if (!std::isfinite(prompt.mean() + decoded.mean()))
      throw FailedError(kDivergence,
                        fmt::format("expected finite divergences; found {} in prompts and {} decoded; the weights are "
                                    "damaged; name another model.",
                                    prompt.mean(), decoded.mean()));
  }

  Divergences prompt, decoded;

 private:
  Decoder reference_, model_;
  Scorer scorer_of_reference_, scorer_;
};

}  // namespace

RowDivergences row_divergences(const torch::Tensor& reference_NV, const torch::Tensor& logits_NV) {
  PRISM_ASSERT(reference_NV.sizes() == logits_NV.sizes(), kDivergence, "logits of different shapes");
  const auto type = reference_NV.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto below_top = [&](const torch::Tensor& given) {
    const auto logits = given.to(type);
    return logits - logits.amax(1, /*keepdim=*/true);
  };
  const auto sum = [](const torch::Tensor& terms_NV) { return terms_NV.sum(1, false, torch::kDouble); };
  const auto reference = below_top(reference_NV), logits = below_top(logits_NV);
  auto weights = reference.exp();
  const auto reference_sum = sum(weights), logits_sum = sum(logits.exp());
  const auto mean_difference = sum(weights.mul_(reference - logits)) / reference_sum;
  return {.nats_N = (mean_difference + logits_sum.log() - reference_sum.log()).cpu(),
          .same_top_N = reference_NV.argmax(1).eq(logits_NV.argmax(1)).cpu()};
}

std::vector<std::string> DivergenceResult::conventions() const {
  std::string cutting =
      fmt::format("windows of {} every {}, each token predicted once", counted(window, "token"), stride);
  if (skip > 0) cutting += fmt::format(", without the first {} predictions of a window", skip);
  return {
      "nats of KL(reference || model) per predicted token; errors take tokens as independent", cutting,
      fmt::format("prompt: {}, with the products that perplexity measures",
                  chunk == 0 ? "windows are read at once" : fmt::format("windows are read {} tokens at a time", chunk)),
      "decoded: windows are read token by token, with the products of generation"};
}

DivergenceResult evaluate_divergence(const Decoder& reference, const Decoder& model, const Tokenizer& tokenizer,
                                     TextSource& source, const DivergenceOptions& options,
                                     std::optional<torch::ScalarType> cache_type,
                                     const std::function<void(const DivergenceProgress&)>& on_progress,
                                     Prefill* prefill) {
  const torch::NoGradGuard no_gradients;
  check_models(reference, model, options);
  const int64_t context = std::min(reference->config().context, model->config().context);
  const auto cut = complete_windows(options.windows, context, /*has_budgets=*/false, kDivergence);
  const auto text =
      tokenize_text(source, tokenizer, {.documents = cut.documents, .tokens = options.tokens}, kDivergence);
  const auto windows = counted_windows(text, cut, options.skip);

  DivergenceProgress progress;
  for (const auto& each : windows) progress.tokens_total += 3 * each.window.length;
  ModelPair pair(reference, model, cache_type, prefill);
  const auto on_step = [&](int64_t tokens) {
    check_not_stopped(kDivergence);
    progress.tokens += tokens;
    if (on_progress) on_progress(progress);
  };
  for (std::span<const TextWindow> rest(windows); !rest.empty();) {
    const auto most = std::clamp<int64_t>(kMostPositions / rest.front().window.length, 1, kMostWindows);
    const auto batch = rest.first(std::min(static_cast<size_t>(most), rest.size()));
    pair.add(text.tokens, batch, on_step);
    progress.mean = pair.decoded.mean();
    rest = rest.subspan(batch.size());
  }
  return {.prompt = figures_of(pair.prompt),
          .decoded = figures_of(pair.decoded),
          .tokens = std::ssize(pair.decoded.nats),
          .documents = std::ssize(text.lengths),
          .windows = std::ssize(windows),
          .window = cut.window,
          .stride = cut.stride,
          .skip = options.skip,
          .chunk = prefill == nullptr ? 0 : prefill->options().chunk};
}

}  // namespace prism
