// Divergences against values computed by hand and against models that read one window at a time.
#include "prism/evaluation/divergence.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/evaluation/windows.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

const std::string kTale = "It was the best of times, it was the worst of times; 0123456789 0123456789.\n";

/// A source of a .txt file with this content.
TextSource source_of(const std::string& content) {
  static const TemporaryFolder folder;
  write_file(folder.path() / "tale.txt", content);
  return TextSource({(folder.path() / "tale.txt").string()});
}

DivergenceResult compare(const Decoder& reference, const Decoder& model, const DivergenceOptions& options = {},
                         const std::string& content = kTale, Prefill* prefill = nullptr) {
  auto source = source_of(content);
  return evaluate_divergence(reference, model, tiny_tokenizer(), source, options, {}, {}, prefill);
}

/// The tiny decoder with packed weights, or with products in bfloat16 where this processor has no kernels for them.
Decoder decoder_in_bfloat16(int64_t context) {
  auto decoder = tiny_decoder(context);
  decoder->set_compute_type(PackedWeight::prompt_type().value_or(torch::kBFloat16));
  if (PackedWeight::prompt_type()) decoder->freeze();
  return decoder;
}

TEST(RowDivergences, AreThoseOfTwoDistributionsWhateverIsAddedToTheirLogits) {
  const auto p = torch::tensor({{0.5, 0.25, 0.25}, {0.125, 0.125, 0.75}}, torch::kDouble);
  const auto q = torch::tensor({{0.25, 0.5, 0.25}, {0.125, 0.125, 0.75}}, torch::kDouble);
  const auto found = row_divergences(p.log() + 7, q.log() - 3);
  // 0.5 log 2 - 0.25 log 2. Logits near 10 are rounded to 2e-15.
  EXPECT_NEAR(found.nats_N[0].item<double>(), 0.25 * std::log(2.0), 1e-14);
  EXPECT_NEAR(found.nats_N[1].item<double>(), 0, 1e-14);
  EXPECT_FALSE(found.same_top_N[0].item<bool>());
  EXPECT_TRUE(found.same_top_N[1].item<bool>());
}

TEST(RowDivergences, AreNotSymmetric) {
  const auto p = torch::tensor({{0.5, 0.5}}, torch::kDouble), q = torch::tensor({{0.9, 0.1}}, torch::kDouble);
  EXPECT_NEAR(row_divergences(p.log(), q.log()).nats_N.item<double>(), 0.5 * std::log(0.5 / 0.9) + 0.5 * std::log(5.0),
              1e-14);
  EXPECT_NEAR(row_divergences(q.log(), p.log()).nats_N.item<double>(), 0.9 * std::log(1.8) + 0.1 * std::log(0.2),
              1e-14);
}

TEST(RowDivergences, KeepTheDigitsOfNearlyEqualLogitsInFloat32) {
  torch::manual_seed(5);
  const auto logits = 4 * torch::randn({8, 5000}), others = logits + 1e-3 * torch::randn({8, 5000});
  const auto p = logits.to(torch::kDouble).log_softmax(1), q = others.to(torch::kDouble).log_softmax(1);
  const auto expected = (p.exp() * (p - q)).sum(1);
  const auto error = (row_divergences(logits, others).nats_N - expected).abs().max().item<double>();
  // Exponentials have a relative error of 2^-23 or less, of either sum. The divergences are near 5e-7.
  EXPECT_LT(error, 3e-8);
  EXPECT_GT(expected.min().item<double>(), 1e-7);
  EXPECT_EQ(row_divergences(logits, logits).nats_N.abs().max().item<double>(), 0);
}

TEST(Divergence, OfAModelFromItselfIsZeroInBothRoles) {
  auto decoder = tiny_decoder(32);
  for (const auto& options : {DivergenceOptions{}, {.windows = {16, 5}}, {.windows = {7, 7}, .skip = 3}}) {
    const auto found = compare(decoder, decoder, options);
    EXPECT_EQ(found.prompt.maximum, 0);
    EXPECT_EQ(found.prompt.standard_error, 0);
    EXPECT_EQ(found.prompt.same_top, 1);
    // Decoded rows are products of one row, summed in another order: logits below 20 differ by a few roundings, 1e-5,
    // which moves a divergence by their square. The rest is the rounding of the divergence itself.
    EXPECT_LT(found.decoded.maximum, 3e-7);
    EXPECT_GT(found.decoded.same_top, 0.97) << "but for a tie";
  }
}

TEST(Divergence, IsTheOneComputedByHandForModelsOfKnownLogits) {
  // One model expects b after a and a after b, the other c after b. Everything else is expected to repeat itself.
  const auto reference = chain_decoder({{'a', 'b'}, {'b', 'a'}}), model = chain_decoder({{'a', 'b'}, {'b', 'c'}});
  // The norm scales the embedding's single 1 to this; all other logits are 0.
  const double top = 1 / std::sqrt(1.0 / 260 + reference->config().norm_eps);
  const double sum = std::exp(top) + kTinyVocab - 1;
  const double expected = top * (std::exp(top) - 1) / sum;
  const auto found = compare(reference, model, {}, "abab");
  EXPECT_EQ(found.tokens, 4) << "after the end-of-text, a, b and a";
  for (const auto& figures : {found.prompt, found.decoded}) {
    // One of four is `expected`. Logits near 16 are float32.
    const double rounding = 16 * 0x1p-22;
    EXPECT_NEAR(figures.mean, expected / 4, rounding);
    EXPECT_NEAR(figures.standard_error, expected / 4, rounding);
    EXPECT_NEAR(figures.median, 0, rounding);
    EXPECT_NEAR(figures.maximum, expected, rounding);
    EXPECT_NEAR(figures.p90, 0.7 * expected, rounding) << "between the third and the fourth of four";
    EXPECT_NEAR(figures.p99, 0.97 * expected, rounding);
    EXPECT_NEAR(figures.p999, 0.997 * expected, rounding);
    EXPECT_EQ(figures.same_top, 0.75);
  }
}

/// The mean divergence of windows that are read one by one: as prompts without a cache, or decoded alone.
double mean_one_by_one(const Decoder& reference, const Decoder& model, const std::vector<Window>& windows,
                       const std::vector<int32_t>& ids, bool decodes) {
  const torch::NoGradGuard no_gradients;
  std::vector<torch::Tensor> nats;
  for (const auto& window : windows) {
    const std::vector<int64_t> read(ids.begin() + window.begin, ids.begin() + window.begin + window.length);
    const auto tokens = torch::tensor(read).unsqueeze(0);
    const auto logits = reference->head.scored_logits(reference(tokens, {})[0]);
    torch::Tensor others;
    if (decodes) {
      KvCache cache(model->config().layers, {.type = model->compute_type()});
      std::vector<torch::Tensor> rows;
      for (int64_t t = 0; t < window.length; ++t) {
        ForwardContext context;
        context.cache = &cache;
        context.rows = {{.sequence = 0, .tokens = 1, .decodes = true}};
        rows.push_back(model->head.logits(model(tokens.narrow(1, t, 1), context)[0]));
      }
      others = torch::cat(rows);
    } else {
      others = model->head.scored_logits(model(tokens, {})[0]);
    }
    nats.push_back(row_divergences(logits, others).nats_N.slice(0, window.counted_from));
  }
  return torch::cat(nats).mean().item<double>();
}

TEST(Divergence, IsThatOfWindowsReadOneByOne) {
  const auto reference = tiny_decoder(48), model = decoder_in_bfloat16(48);
  const auto tokenizer = tiny_tokenizer();
  std::vector<int32_t> ids = {*tokenizer.special_ids().opening};
  for (const int32_t id : tokenizer.encode(kTale, SpecialTokens::as_text)) ids.push_back(id);
  const auto found = compare(reference, model, {.windows = {20, 12}});
  const auto windows = cut_windows(0, std::ssize(ids), 20, 12);
  EXPECT_EQ(found.windows, std::ssize(windows));
  EXPECT_EQ(found.tokens, std::ssize(ids) - 1);
  // Batches of another size change the order of float32 sums, which bfloat16 may round to its next value: a percent of
  // what all its roundings together make.
  const double prompt = mean_one_by_one(reference, model, windows, ids, /*decodes=*/false);
  const double decoded = mean_one_by_one(reference, model, windows, ids, /*decodes=*/true);
  EXPECT_NEAR(found.prompt.mean, prompt, 0.03 * prompt);
  EXPECT_NEAR(found.decoded.mean, decoded, 0.03 * decoded);
  EXPECT_GT(prompt, 1e-6);
  EXPECT_GT(found.prompt.standard_error, 0);
  EXPECT_GE(found.prompt.maximum, found.prompt.p999);
  EXPECT_GE(found.prompt.p99, found.prompt.p90);
}

TEST(Divergence, CountsThePredictionsThatAreAskedFor) {
  const auto decoder = tiny_decoder(32);
  const auto tokens = [&](const DivergenceOptions& options) { return compare(decoder, decoder, options).tokens; };
  const int64_t all = tokens({});
  EXPECT_EQ(tokens({.windows = {16, 4}}), all) << "each token is predicted once";
  EXPECT_EQ(tokens({.tokens = 33}), 32);
  EXPECT_EQ(tokens({.tokens = 1000000}), all);
  EXPECT_EQ(tokens({.windows = {16, 16}, .skip = 8, .tokens = 33}), 16);
  EXPECT_EQ(tokens({.windows = {16, 8}, .skip = 8, .tokens = 33}), 24) << "later windows skip these already";
  EXPECT_EQ(tokens({.windows = {16, 16}, .skip = 8, .tokens = 36}), 16) << "the last window is too short";
  const auto result = compare(decoder, decoder, {.windows = {16, 8}, .skip = 8});
  EXPECT_EQ(result.window, 16);
  EXPECT_EQ(result.stride, 8);
  EXPECT_CONTAINS(result.conventions()[1], "16 tokens every 8");
  EXPECT_CONTAINS(result.conventions()[1], "without the first 8 predictions");
}

TEST(Divergence, ReportsWhatBothModelsHaveRead) {
  const auto decoder = tiny_decoder(32);
  auto source = source_of(kTale);
  DivergenceProgress last;
  const auto found =
      evaluate_divergence(decoder, decoder, tiny_tokenizer(), source, {}, {}, [&](const DivergenceProgress& state) {
        EXPECT_GT(state.tokens, last.tokens);
        last = state;
      });
  EXPECT_EQ(last.tokens, 3 * found.tokens);
  EXPECT_EQ(last.tokens_total, last.tokens);
}

TEST(Divergence, RefusesWhatItCannotCompare) {
  const auto decoder = tiny_decoder(32);
  const auto refused = [&](const Decoder& model, const DivergenceOptions& options, const std::string& content = kTale) {
    return message_of<InputError>([&] { compare(decoder, model, options, content); });
  };
  EXPECT_CONTAINS(refused(tiny_budget_decoder("learned", 32), {}), "without head budgets");
  EXPECT_CONTAINS(refused(tiny_decoder(32, 300), {}), "259 tokens in the reference and 300 in the model");
  EXPECT_CONTAINS(refused(decoder, {.windows = {33, 0}}), "window of 1 to 32");
  EXPECT_CONTAINS(refused(decoder, {.skip = 32}), "windows of more than 32 tokens");
  EXPECT_CONTAINS(refused(decoder, {.skip = -1}), "0 or more skipped predictions; found -1");
  EXPECT_CONTAINS(refused(decoder, {.tokens = -1}), "0 or more tokens; found -1");
  EXPECT_CONTAINS(refused(decoder, {.tokens = 1}), "at least 2 tokens");
  EXPECT_CONTAINS(refused(decoder, {}, ""), "expected text; found none");
}

TEST(Divergence, FailsWhenAModelIsDamaged) {
  auto decoder = tiny_decoder(32), damaged = tiny_decoder(32);
  {
    const torch::NoGradGuard no_gradients;
    damaged->norm.weight.tensor().fill_(std::numeric_limits<float>::quiet_NaN());
  }
  EXPECT_THROW(compare(decoder, damaged), FailedError);
}

}  // namespace
}  // namespace prism
