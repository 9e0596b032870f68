// Prompts in chunks and with selectors against one dense pass.

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <optional>

#include "prism/attention/prefill.h"
#include "prism/attention/prefill_meter.h"
#include "prism/core/error.h"
#include "prism/kernels/simd/isa.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/models/forward_in_chunks.h"

namespace prism {
namespace {

constexpr int64_t kTokens = 300;

torch::Tensor prompt() {
  torch::manual_seed(5);
  return torch::randint(kTinyVocab, {1, kTokens}, torch::kLong);
}

/// Small blocks, so that a short prompt has many.
PrefillOptions spectral(double p, int64_t chunk) {
  return {.selector = "spectral", .settings = {{"p", p}, {"recent", 1}, {"block_size", 32}}, .chunk = chunk};
}

struct Read {
  torch::Tensor hidden_BTD;
  std::vector<LayerPrefill> layers;
};

Read read(Decoder& decoder, const torch::Tensor& tokens_BT, const PrefillOptions& options, bool with_cache = true) {
  const torch::NoGradGuard no_gradients;
  std::optional<KvCache> cache;
  PrefillMeter meter({.recall_rows = 2});
  Prefill prefill(options, {}, &meter);
  ForwardContext context;
  context.prefill = &prefill;
  if (with_cache)
    context.cache = &cache.emplace(decoder->config().layers, KvCacheOptions{.sequences = tokens_BT.size(0)});
  auto hidden = forward_in_chunks(decoder, tokens_BT, context, options.chunk);
  return {std::move(hidden), meter.layers()};
}

/// Sums over at most 300 keys in a different order, in 3 layers, on values of a normed stream below 10.
constexpr double kTolerance = 300 * 0x1p-23 * 10;

TEST(Chunks, GiveWhatTheWholePromptGives) {
  auto decoder = tiny_decoder(kTokens);
  const auto whole = read(decoder, prompt(), {}, false).hidden_BTD;
  for (const int64_t chunk : {1, 7, 32, 200, 299, 300, 1000}) {
    const auto found = read(decoder, prompt(), {.chunk = chunk});
    EXPECT_LT((found.hidden_BTD - whole).abs().max().item<double>(), kTolerance) << chunk;
  }
}

TEST(Chunks, OfWholeBlocksKeepTheSameBlocksInCausalCalibration) {
  auto decoder = tiny_decoder(kTokens);
  const auto whole = read(decoder, prompt(), spectral(0.5, 0));
  const auto density = all_layers(whole.layers).all_heads().density();
  EXPECT_LT(density, 0.9);
  for (const int64_t chunk : {32, 64, 160}) {
    const auto found = read(decoder, prompt(), spectral(0.5, chunk));
    EXPECT_LT((found.hidden_BTD - whole.hidden_BTD).abs().max().item<double>(), kTolerance) << chunk;
    EXPECT_EQ(all_layers(found.layers).all_heads().density(), density) << chunk;
  }
  // The result differs from dense attention.
  EXPECT_GT((whole.hidden_BTD - read(decoder, prompt(), {}).hidden_BTD).abs().max().item<double>(), 10 * kTolerance);
}

TEST(Chunks, MayEndWithOneTokenAndKnowWhereThePromptEnds) {
  auto decoder = tiny_decoder(kTokens);
  const auto tokens = prompt().narrow(1, 0, 257);
  auto options = spectral(0.5, 0);
  options.settings["last_dense"] = 3;
  const auto whole = read(decoder, tokens, options);
  for (const int64_t chunk : {32, 64, 128}) {
    options.chunk = chunk;
    const auto found = read(decoder, tokens, options);
    EXPECT_LT((found.hidden_BTD - whole.hidden_BTD).abs().max().item<double>(), kTolerance) << chunk;
    EXPECT_EQ(all_layers(found.layers).all_heads().density(), all_layers(whole.layers).all_heads().density()) << chunk;
  }
}

TEST(Chunks, ThatKeepAllBlocksAreDense) {
  auto decoder = tiny_decoder(kTokens);
  const auto whole = read(decoder, prompt(), {}).hidden_BTD;
  for (const int64_t chunk : {0, 50, 64}) {
    const auto found = read(decoder, prompt(), spectral(1, chunk));
    EXPECT_LT((found.hidden_BTD - whole).abs().max().item<double>(), kTolerance) << chunk;
    EXPECT_EQ(all_layers(found.layers).all_heads().density(), 1) << chunk;
  }
}

TEST(PrefillMeter, RecordsEveryLayerAndHead) {
  auto decoder = tiny_decoder(kTokens);
  const auto layers = read(decoder, prompt(), spectral(0.5, 100)).layers;
  ASSERT_EQ(layers.size(), 3u);
  for (size_t i = 0; i < layers.size(); ++i) {
    ASSERT_EQ(layers[i].heads.size(), static_cast<size_t>(decoder->config().layers[i].heads));
    for (const auto& head : layers[i].heads) {
      EXPECT_LE(head.density(), 1);
      EXPECT_TRUE(head.has_recall());
      EXPECT_LE(head.recall(), 1 + 1e-9);
      EXPECT_LE(head.recall_quantile(0), head.recall());
    }
    EXPECT_GT(layers[i].attend_seconds, 0);
  }
  const auto sum = all_layers(layers);
  EXPECT_EQ(sum.all_heads().visible, 12 * layers[0].heads[0].visible);  // 2 + 4 + 6 heads of the same rows
}

int64_t operations = 0;

std::unique_ptr<at::ObserverContext> count_operation(const at::RecordFunction&) {
  ++operations;
  return nullptr;
}

/// Number of LibTorch operations that `work` calls on this thread.
int64_t count_operations(const std::function<void()>& work) {
  operations = 0;
  const auto handle =
      at::addThreadLocalCallback(at::RecordFunctionCallback(count_operation).scopes({at::RecordScope::FUNCTION}));
  work();
  at::removeCallback(handle);
  return operations;
}

TEST(Prefill, MeasuresNothingWithoutAMeter) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(kTokens);
  const auto tokens = prompt();
  const auto count = [&](const PrefillOptions* options, PrefillMeter* meter) {
    ForwardContext context;
    std::optional<Prefill> prefill;
    if (options != nullptr) context.prefill = &prefill.emplace(*options, PrefillCosts(), meter);
    return count_operations([&] { decoder(tokens, context); });
  };
  const PrefillOptions dense;
  count(nullptr, nullptr);  // makes the rotary tables
  const int64_t alone = count(nullptr, nullptr);
  ASSERT_GT(alone, 0);
  EXPECT_EQ(count(&dense, nullptr), alone);
  PrefillMeter meter({.recall_rows = 1});
  EXPECT_GT(count(&dense, &meter), alone) << "measuring must show in the count";
  ASSERT_EQ(meter.layers().size(), 3u);
  EXPECT_TRUE(meter.layers()[0].heads[0].has_recall());
}

TEST(Prefill, GivesTheSameWithAndWithoutAMeter) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(kTokens);
  const auto hidden = [&](PrefillMeter* meter) {
    Prefill prefill(spectral(0.5, 0), {}, meter);
    ForwardContext context;
    context.prefill = &prefill;
    return decoder(prompt(), context);
  };
  PrefillMeter meter({.recall_rows = 2});
  EXPECT_TRUE(at::equal(hidden(&meter), hidden(nullptr)));
}

TEST(Prefill, SaysWhereItsSelectorHasNothingToDecideBy) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(kTokens);
  Prefill prefill({.selector = "auto"});
  ForwardContext context;
  context.prefill = &prefill;
  const auto dense = decoder(prompt(), ForwardContext{});
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(at::equal(decoder(prompt(), context), dense));
  // Heads are 24, 12 and 8 wide. prism's flash attention, which can skip blocks, supports two of these widths.
  const auto notes = prefill.notes();
  ASSERT_EQ(notes.size(), current_isa() == Isa::portable ? 0u : 2u) << "each once";
  if (!notes.empty()) EXPECT_CONTAINS(std::string(notes[1]), "24 wide");
}

TEST(Prefill, ForgetsWithTheCache) {
  const torch::NoGradGuard no_gradients;
  auto decoder = tiny_decoder(kTokens);
  KvCache cache(decoder->config().layers, {.positions = kTokens});
  Prefill prefill(spectral(0.5, 0));
  ForwardContext context;
  context.cache = &cache;
  context.prefill = &prefill;
  const auto tokens = prompt();
  const auto first = decoder(tokens, context).clone();
  cache.truncate(64);
  const auto again = decoder(tokens.narrow(1, 64, kTokens - 64), context);
  EXPECT_LT((again - first.narrow(1, 64, kTokens - 64)).abs().max().item<double>(), kTolerance);
  // Decoding is dense, and the next chunk sees its keys.
  cache.truncate(64);
  context.prefill = nullptr;
  for (int64_t t = 64; t < 96; ++t) decoder(tokens.narrow(1, t, 1), context);
  context.prefill = &prefill;
  EXPECT_NO_THROW(decoder(tokens.narrow(1, 96, kTokens - 96), context));
}

TEST(Prefill, RefusesWhatItCannotServe) {
  EXPECT_THROW(Prefill({.selector = "telepathy"}), InputError);
  EXPECT_THROW(Prefill({.selector = "spectral", .settings = {{"p", 2}}}), InputError);
  EXPECT_THROW(Prefill({.chunk = -1}), InputError);
  EXPECT_THROW(PrefillMeter({.recall_rows = -1}), InputError);
  auto decoder = tiny_decoder(kTokens);
  Prefill prefill(spectral(0.5, 0));
  ForwardContext context;
  context.prefill = &prefill;
  context.documents_BT = torch::zeros({1, kTokens}, torch::kInt);
  EXPECT_THROW(decoder(prompt(), context), InputError);
}

}  // namespace
}  // namespace prism
