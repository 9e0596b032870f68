// Features that turn with the position in the word: positions, and what a model computes from them.
#include "prism/attention/word_positions.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/attention/prefill.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/layers/weights.h"
#include "tests/models/forward_in_chunks.h"

namespace prism {
namespace {

constexpr int64_t kWordTokens = 40;

/// Ids divisible by three start a word.
std::vector<uint8_t> every_third(int64_t vocab_size) {
  std::vector<uint8_t> starts(static_cast<size_t>(vocab_size));
  for (size_t id = 0; id < starts.size(); id += 3) starts[id] = 1;
  return starts;
}

/// Layers with different head counts and shared key/value heads.
Decoder turning_decoder(int64_t word_dims, const BudgetConfig& budget = {}) {
  ModelConfig config;
  config.vocab_size = 50;
  config.d_model = 48;
  config.context = kWordTokens;
  config.schedule = "2x1,4x1,6x1";
  config.kv_schedule = "1x1,4x1,2x1";
  config.ffn_width = 40;
  config.init_std = 0.3;
  config.each.rotary.word_dims = word_dims;
  config.each.budget = budget;
  auto decoder = make_decoder(config);
  decoder->set_word_starts(every_third(50));
  return decoder;
}

torch::Tensor tokens_of(int64_t rows, int64_t tokens = kWordTokens) {
  torch::manual_seed(5);
  return torch::randint(50, {rows, tokens}, torch::kLong);
}

double distance(const torch::Tensor& a, const torch::Tensor& b) {
  return (a - b).abs().max().item<double>();
}

/// Sums of at most 48 products in another order, on values of a normed stream below 10.
constexpr double kRounding = 48 * 0x1p-23 * 10;

TEST(WordPositions, CountFromTheLastTokenThatStartsAWord) {
  const auto tokens = tokens_of(5, 30);
  const auto opening = torch::tensor({0, 1, 4, 100, 0}, torch::kLong);
  const auto starts = every_third(50);
  const auto found =
      word_positions(tokens, torch::tensor(std::vector<uint8_t>(starts)).to(torch::kBool), opening).contiguous();
  for (int64_t b = 0; b < 5; ++b) {
    int64_t position = opening[b].item<int64_t>() - 1;
    for (int64_t t = 0; t < 30; ++t) {
      position = tokens[b][t].item<int64_t>() % 3 == 0 ? 0 : position + 1;
      ASSERT_EQ(found[b][t].item<int64_t>(), position) << b << ", " << t;
    }
  }
}

TEST(WordPositions, AreNeededByModelsThatTurnWithThem) {
  ModelConfig config = turning_decoder(4)->config();
  const Decoder unknowing(config);
  EXPECT_REFUSED(unknowing(tokens_of(1), {}), "expected a tokenizer, from which positions in words are found");
  for (auto& layer : config.layers) layer.rotary.kind = "none";
  EXPECT_FALSE(has_word_positions(config));
}

TEST(WordPositions, ChangeWhatAModelComputes) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = turning_decoder(4);
  const auto tokens = tokens_of(1);
  const auto with = decoder(tokens, {});
  decoder->set_word_starts(std::vector<uint8_t>(50, 1));
  EXPECT_GT(distance(decoder(tokens, {}), with), 0.01);
}

TEST(WordPositions, AreTheSameInChunksAndTokenByToken) {
  const torch::NoGradGuard no_gradients;
  auto decoder = turning_decoder(4);
  const auto tokens = tokens_of(3);
  const auto opening = torch::tensor({2, 0, 9}, torch::kLong);
  ForwardContext at_once;
  at_once.word_opening_B = opening;
  const auto whole = decoder(tokens, at_once);
  for (const int64_t chunk : {1, 7, 16, 39}) {
    KvCache cache(decoder->config().layers, {.sequences = 3, .positions = kWordTokens});
    auto context = at_once;
    context.cache = &cache;
    EXPECT_LT(distance(forward_in_chunks(decoder, tokens, context, chunk), whole), kRounding) << chunk;
    // The cache forgets positions in words with the rest.
    for (int64_t b = 0; b < 3; ++b) cache.truncate(20, b);
    EXPECT_LT(distance(decoder(tokens.narrow(1, 20, 20), context), whole.narrow(1, 20, 20)), kRounding) << chunk;
    for (int64_t b = 0; b < 3; ++b) cache.truncate(0, b);
    EXPECT_LT(distance(decoder(tokens, context), whole), kRounding) << chunk;
  }
}

TEST(WordPositions, OfAWindowThatOpensInAWordAreThoseOfTheWholeText) {
  const torch::NoGradGuard no_gradients;
  const auto decoder = turning_decoder(4);
  const auto tokens = tokens_of(1);
  const auto starts = every_third(50);
  int64_t inside = 0;
  for (int64_t first = 1; first < kWordTokens; ++first) {
    // The window as a document of its own, whose positions start at 0.
    ForwardContext of_text;
    of_text.documents_BT = at::arange(kWordTokens, torch::kLong).ge(first).to(torch::kInt).unsqueeze(0);
    of_text.positions_BT = positions_in_documents(of_text.documents_BT);
    const auto whole = decoder(tokens, of_text).narrow(1, first, kWordTokens - first);
    std::vector<int32_t> before;
    for (int64_t t = 0; t < first; ++t) before.push_back(static_cast<int32_t>(tokens[0][t].item<int64_t>()));
    ForwardContext of_window;
    const int64_t opening = decoder->word_opening(before);
    of_window.word_opening_B = torch::full({1}, opening, torch::kLong);
    ASSERT_LT(distance(decoder(tokens.narrow(1, first, kWordTokens - first), of_window), whole), kRounding) << first;
    inside += tokens[0][first].item<int64_t>() % 3 != 0 ? 1 : 0;
  }
  EXPECT_GT(inside, 15);
}

TEST(WordPositions, LeaveTheOtherFeaturesToTurnLikeAHeadWithoutThem) {
  // One head whose last four features are zero in queries and keys, against a head without these features.
  const torch::NoGradGuard no_gradients;
  const RotaryConfig wide{.word_dims = 4}, narrow;
  RotaryCache cache;
  const auto words = torch::zeros({1, 6}, torch::kLong);
  const auto rows = cache.rows(wide, 12, {.word_positions_BT = words}, 6);
  const auto plain = cache.rows(narrow, 8, {}, 6);
  EXPECT_TRUE(torch::equal(rows.cos[0].narrow(1, 0, 4), plain.cos));
  EXPECT_TRUE(torch::equal(rows.sin[0].narrow(1, 0, 4), plain.sin));
  EXPECT_TRUE(rows.cos[0].narrow(1, 4, 2).eq(1).all().item<bool>());
}

TEST(WordPositions, HaveTheGradientsOfFiniteDifferences) {
  auto decoder = turning_decoder(4);
  convert_weights(decoder->weights(), torch::kDouble);
  decoder->set_compute_type(torch::kDouble);
  const auto tokens = tokens_of(2, 7), labels = tokens.flip(1);
  ForwardContext context;
  context.word_opening_B = torch::tensor({3, 0}, torch::kLong);
  expect_weight_gradients(decoder->weights(), {"blocks_0.attention.qkv.weight", "blocks_2.attention.qkv.weight"},
                          [&] { return decoder->head.loss(decoder(tokens, context), labels); });
}

TEST(WordPositions, AreRecomputedInTheBackwardPass) {
  const auto decoder = turning_decoder(4);
  const auto tokens = tokens_of(2), labels = tokens_of(2).flip(1);
  const auto gradients = [&](bool recomputes) {
    decoder->set_recompute(recomputes);
    std::vector<torch::Tensor> found;
    decoder->head.loss(decoder(tokens, {}), labels).backward();
    for (const auto& entry : decoder->weights()) {
      found.push_back(entry.weight.tensor().grad().clone());
      entry.weight.tensor().mutable_grad().reset();
    }
    return found;
  };
  const auto kept = gradients(false), again = gradients(true);
  for (size_t i = 0; i < kept.size(); ++i) EXPECT_TRUE(torch::equal(kept[i], again[i])) << i;
}

TEST(WordPositions, WorkWithHeadBudgetsAndSelectors) {
  const torch::NoGradGuard no_gradients;
  auto decoder = turning_decoder(4, {.kind = "learned"});
  const auto tokens = tokens_of(3);
  ForwardContext context;
  context.word_opening_B = torch::tensor({2, 0, 9}, torch::kLong);
  const auto packed = decoder(tokens, context);
  // A probe makes attention compute all heads and mask those that are not kept.
  Probe probe;
  context.probe = &probe;
  EXPECT_LT(distance(decoder(tokens, context), packed), kRounding);
  auto plain = turning_decoder(4);
  Prefill everything({.selector = "spectral", .settings = {{"p", 1}, {"block_size", 32}}});
  ForwardContext sparse;
  sparse.prefill = &everything;
  EXPECT_LT(distance(plain(tokens, sparse), plain(tokens, {})), kRounding);
}

}  // namespace
}  // namespace prism
