#include "prism/attention/attention.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numbers>

#include "prism/core/error.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(Rotary, TurnsPairJByItsAngleTimesThePosition) {
  const auto angles = rotary_angles({.base = 100}, 4);
  EXPECT_DOUBLE_EQ(angles[0].item<double>(), 1.0);
  EXPECT_DOUBLE_EQ(angles[1].item<double>(), 0.1);
  RotaryCache cache;
  const auto table = cache.rows({.base = 100}, 4, {.first = 3}, 2);
  EXPECT_FLOAT_EQ(table.cos[0][1].item<float>(), std::cos(0.3f));
  EXPECT_FLOAT_EQ(table.sin[1][0].item<float>(), std::sin(4.0f));
}

/// The rows requested last are kept.
TEST(Rotary, GivesEveryCallItsOwnRows) {
  RotaryCache cache;
  const auto first = cache.rows({}, 4, {.first = 3}, 1);
  EXPECT_TRUE(cache.rows({}, 4, {.first = 3}, 1).cos.is_same(first.cos));
  for (const auto& [start, tokens] : {std::pair{3, 2}, {4, 2}, {4, 1}, {900, 5}, {3, 1}}) {
    const auto rows = cache.rows({}, 4, {.first = start}, tokens);
    EXPECT_EQ(rows.sin.sizes(), at::IntArrayRef({tokens, 2}));
    EXPECT_FLOAT_EQ(rows.sin[tokens - 1][0].item<float>(), std::sin(static_cast<float>(start + tokens - 1)));
  }
  EXPECT_FLOAT_EQ(cache.rows({.base = 100}, 4, {.first = 3}, 1).sin[0][1].item<float>(), std::sin(0.3f));
  EXPECT_TRUE(torch::equal(cache.rows({}, 4, {.positions_BT = torch::tensor({{3}})}, 1).sin[0], first.sin));
}

TEST(Rotary, ScalesPositionsLinearly) {
  const auto plain = rotary_angles({}, 64), scaled = rotary_angles({.scaling = "linear", .factor = 4}, 64);
  EXPECT_TRUE(torch::allclose(plain / 4, scaled));
}

TEST(Rotary, ScalesSlowPairsAloneByYarn) {
  // Qwen3-8B stretched to 128k. Of the original 32,768 positions pair 23 makes 36.5 turns, 24 29.3; 39 1.15, 40 0.93.
  const RotaryConfig yarn{.base = 1e6, .scaling = "yarn", .factor = 4, .original_context = 32768};
  const auto plain = rotary_angles({.base = 1e6}, 128), scaled = rotary_angles(yarn, 128);
  const auto turns = [&](int64_t pair) { return plain[pair].item<double>() * 32768 / (2 * std::numbers::pi); };
  EXPECT_GT(turns(23), 32);
  EXPECT_LT(turns(24), 32);
  EXPECT_GT(turns(39), 1);
  EXPECT_LT(turns(40), 1);
  EXPECT_TRUE(torch::allclose(scaled.narrow(0, 0, 24), plain.narrow(0, 0, 24), 1e-14, 0));
  EXPECT_TRUE(torch::allclose(scaled.narrow(0, 40, 24), plain.narrow(0, 40, 24) / 4, 1e-14, 0));
  for (const int64_t j : {24, 31, 38}) {
    const double ramp = static_cast<double>(j - 23) / (40 - 23), t = plain[j].item<double>();
    EXPECT_NEAR(scaled[j].item<double>(), (1 - ramp) * t + ramp * t / 4, 1e-15) << j;
  }
  RotaryCache cache;
  const double factor = 0.1 * std::log(4.0) + 1;
  EXPECT_NEAR(rotary_attention_factor(yarn), factor, 1e-15);
  EXPECT_FLOAT_EQ(cache.rows(yarn, 128, {}, 1).cos[0][0].item<float>(), static_cast<float>(factor));
  EXPECT_EQ(rotary_attention_factor({.scaling = "linear", .factor = 4}), 1);
}

TEST(Rotary, ScalesSlowPairsAloneAsLlama3Does) {
  // Llama 3.1: factor 8 of 8,192 positions, pairs of heads of width 128.
  const RotaryConfig scaled{.base = 5e5, .scaling = "llama3", .factor = 8, .original_context = 8192};
  const auto plain = rotary_angles({.base = 5e5}, 128), angles = rotary_angles(scaled, 128);
  int unchanged = 0, between = 0, divided = 0;
  for (int64_t j = 0; j < 64; ++j) {
    const double t = plain[j].item<double>(), wavelength = 2 * std::numbers::pi / t;
    const double smooth = (8192 / wavelength - 1) / (4 - 1);
    const double expected = wavelength < 8192.0 / 4 ? t : wavelength > 8192 ? t / 8 : (1 - smooth) * t / 8 + smooth * t;
    EXPECT_NEAR(angles[j].item<double>(), expected, 1e-15) << j;
    (wavelength < 8192.0 / 4 ? unchanged : wavelength > 8192 ? divided : between)++;
  }
  EXPECT_GT(unchanged, 20);
  EXPECT_GT(between, 3);
  EXPECT_GT(divided, 20);
  EXPECT_EQ(rotary_attention_factor(scaled), 1);
  EXPECT_REFUSED(rotary_angles({.scaling = "llama3", .factor = 8}, 8),
                 "rotary.original_context: expected at least 1 for llama3");
  EXPECT_REFUSED(
      rotary_angles({.scaling = "llama3", .factor = 8, .original_context = 99, .low_freq_factor = 4}, 8),
      "rotary.low_freq_factor: expected a number between 0 and rotary.high_freq_factor, 4, for llama3; found 4");
}

TEST(Rotary, DividesAnglesByFactors) {
  const auto plain = rotary_angles({}, 8), divided = rotary_angles({.factors = {1, 2, 4, 0.5}}, 8);
  EXPECT_TRUE(torch::allclose(divided * torch::tensor({1.0, 2.0, 4.0, 0.5}, torch::kDouble), plain, 1e-15));
  EXPECT_REFUSED(rotary_angles({.factors = {1, 2}}, 8), "rotary.factors: expected one for each of 4 pairs; found 2");
  EXPECT_REFUSED(rotary_angles({.factors = {1, 0, 1, 1}}, 8), "rotary.factors: expected numbers from 0.001");
}

TEST(Rotary, PicksTheRowsOfACallOnce) {
  RotaryCache cache;
  const auto words = torch::tensor({{0, 1, 2}}, torch::kLong), others = torch::tensor({{0, 1, 0}}, torch::kLong);
  const RotaryConfig config{.word_dims = 4};
  const auto first = cache.rows(config, 8, {.word_positions_BT = words}, 3);
  EXPECT_TRUE(cache.rows(config, 8, {.word_positions_BT = words}, 3).cos.is_same(first.cos)) << "the next layer's";
  const auto later = cache.rows(config, 8, {.word_positions_BT = words, .first = 2}, 3);
  EXPECT_TRUE(
      torch::equal(later.cos[0][0], cache.rows(config, 8, {.word_positions_BT = others, .first = 2}, 3).cos[0][0]));
  EXPECT_FALSE(torch::equal(later.cos, first.cos));
  const auto other = cache.rows(config, 8, {.word_positions_BT = others}, 3);
  EXPECT_FALSE(torch::equal(other.cos, first.cos));
}

TEST(Rotary, SharesOneTableBetweenLayersThatTurnAlike) {
  RotaryCache cache;
  for (const int64_t width : {256, 128, 64, 256, 64}) cache.rows({}, width, {}, 10);
  EXPECT_EQ(cache.tables(), 3u);
  cache.rows({.base = 5e5}, 64, {}, 10);
  EXPECT_EQ(cache.tables(), 4u);
}

TEST(Rotary, GivesEachPositionItsRow) {
  RotaryCache cache;
  const auto positions = torch::tensor({{0, 1, 0}, {5, 6, 700}}, torch::kLong);
  const auto table = cache.rows({}, 8, {.positions_BT = positions}, 3);
  EXPECT_TRUE(torch::equal(table.cos[1][2], cache.rows({}, 8, {.first = 700}, 1).cos[0]));
  EXPECT_TRUE(torch::equal(table.sin[0][2], cache.rows({}, 8, {}, 1).sin[0]));
}

TEST(Rotary, TurnsTheLastPairsByThePositionInTheWord) {
  const RotaryConfig config{.base = 100, .word_dims = 4, .word_base = 16};
  // The first two of four pairs turn like a head of width 4; the last two do not turn with the position.
  EXPECT_TRUE(torch::equal(rotary_angles(config, 8), torch::tensor({1.0, 0.1, 0.0, 0.0}, torch::kDouble)));
  RotaryCache cache;
  const auto words = torch::tensor({{0, 1, 2}, {7, 0, 1}}, torch::kLong);
  const auto table = cache.rows(config, 8, {.word_positions_BT = words, .first = 5}, 3);
  const auto placed = cache.rows(
      config, 8, {.positions_BT = torch::tensor({{5, 6, 7}, {5, 6, 7}}, torch::kLong), .word_positions_BT = words}, 3);
  EXPECT_TRUE(torch::equal(placed.cos, table.cos));
  ASSERT_EQ(table.cos.sizes(), (std::vector<int64_t>{2, 3, 4}));
  for (int64_t b = 0; b < 2; ++b)
    for (int64_t t = 0; t < 3; ++t) {
      const auto p = static_cast<double>(5 + t), w = static_cast<double>(words[b][t].item<int64_t>());
      const std::vector<double> angles = {p, 0.1 * p, w, 0.25 * w};
      for (size_t j = 0; j < 4; ++j) {
        EXPECT_NEAR(table.cos[b][t][static_cast<int64_t>(j)].item<double>(), std::cos(angles[j]), 1e-6);
        EXPECT_NEAR(table.sin[b][t][static_cast<int64_t>(j)].item<double>(), std::sin(angles[j]), 1e-6);
      }
    }
}

TEST(Rotary, RejectsWhatItCannotTurnBy) {
  for (const int64_t words : {-2, 3, 8, 10})
    EXPECT_REFUSED(rotary_angles({.word_dims = words}, 8), "rotary.word_dims: expected an even number from 0 to 6");
  EXPECT_REFUSED(rotary_angles({.word_dims = 2, .word_base = 0}, 8), "rotary.word_base: expected a number from");
  EXPECT_THROW(rotary_angles({}, 7), InputError);
  EXPECT_THROW(rotary_angles({.base = 0}, 8), InputError);
  EXPECT_THROW(rotary_angles({.scaling = "dynamic"}, 8), InputError);
  const auto yarn = [](const std::function<void(RotaryConfig&)>& change) {
    RotaryConfig config{.scaling = "yarn", .factor = 2, .original_context = 64};
    rotary_angles(config, 8);
    change(config);
    rotary_angles(config, 8);
  };
  EXPECT_REFUSED(yarn([](auto& c) { c.original_context = 0; }), "rotary.original_context: expected at least 1");
  EXPECT_REFUSED(yarn([](auto& c) {
                   c.base = 2;
                   c.original_context = 4;
                 }),
                 "rotary.original_context: expected one in which yarn's ramp ends at pair 0 or later");
  EXPECT_REFUSED(yarn([](auto& c) { c.beta_slow = c.beta_fast; }), "rotary.beta_slow: expected a number between 0 and");
  EXPECT_REFUSED(yarn([](auto& c) { c.beta_slow = 0; }), "rotary.beta_slow: expected a number between 0 and");
  EXPECT_REFUSED(yarn([](auto& c) { c.base = 1; }), "rotary.base: expected a number above 1 for yarn; found 1");
  EXPECT_REFUSED(yarn([](auto& c) { c.attention_factor = -1; }), "rotary.attention_factor: expected at least 0");
}

TEST(PositionsInDocuments, StartAgainAtZeroWithEveryDocument) {
  const auto documents = torch::tensor({{0, 0, 1, 1, 1, 4}, {2, 2, 2, 2, 2, 2}}, torch::kInt);
  const auto expected = torch::tensor({{0, 1, 0, 1, 2, 0}, {0, 1, 2, 3, 4, 5}}, torch::kLong);
  EXPECT_TRUE(torch::equal(positions_in_documents(documents), expected));
}

LayerConfig layer(int64_t heads, int64_t kv_heads, int64_t head_dim, bool qk_norm = false) {
  return {heads, kv_heads, head_dim, {}, {.kind = "swiglu", .width = 16}, qk_norm};
}

Attention make_attention(int64_t heads, int64_t kv_heads, int64_t head_dim) {
  torch::manual_seed(1);
  Attention attention({.d_model = 24, .norm_eps = 1e-5}, layer(heads, kv_heads, head_dim), 0,
                      std::make_shared<RotaryCache>());
  torch::NoGradGuard no_gradients;
  for (const auto& entry : weights_of(attention)) entry.weight.tensor().normal_(0, 0.3);
  return attention;
}

TEST(Attention, SeesNoLaterPosition) {
  auto attention = make_attention(4, 2, 6);
  auto x = torch::randn({2, 9, 24});
  const auto before = attention(x, ForwardContext{});
  x.select(1, 5).normal_();
  const auto after = attention(x, ForwardContext{});
  EXPECT_TRUE(torch::equal(before.narrow(1, 0, 5), after.narrow(1, 0, 5)));
  EXPECT_FALSE(torch::allclose(before.narrow(1, 5, 4), after.narrow(1, 5, 4)));
}

TEST(Attention, WithACacheEqualsOneCallOverTheWholeText) {
  for (const auto& [heads, kv_heads, head_dim] :
       {std::tuple<int64_t, int64_t, int64_t>{4, 2, 6}, {1, 1, 24}, {3, 1, 16}}) {
    auto attention = make_attention(heads, kv_heads, head_dim);
    torch::NoGradGuard no_gradients;
    const auto x = torch::randn({2, 9, 24});
    const auto whole = attention(x, ForwardContext{});
    KvCache cache({layer(heads, kv_heads, head_dim)}, {.sequences = 2});
    ForwardContext context;
    context.cache = &cache;
    std::vector<torch::Tensor> parts;
    for (const auto& [first, count] : {std::pair<int64_t, int64_t>{0, 4}, {4, 1}, {5, 3}, {8, 1}}) {
      context.rows = {{.sequence = 0, .tokens = count}, {.sequence = 1, .tokens = count}};
      context.first_position = first;
      cache.begin(context.rows);
      parts.push_back(attention(x.narrow(1, first, count), context));
      cache.end();
    }
    EXPECT_TRUE(torch::allclose(torch::cat(parts, 1), whole, 1e-4, 1e-5));
  }
}

TEST(Attention, InsideADocumentEqualsTheDocumentAlone) {
  auto attention = make_attention(4, 2, 6);
  torch::NoGradGuard no_gradients;
  const auto x = torch::randn({1, 9, 24});
  ForwardContext context;
  context.documents_BT = torch::tensor({{0, 0, 0, 0, 1, 1, 1, 1, 1}}, torch::kInt);
  context.positions_BT = positions_in_documents(context.documents_BT);
  const auto packed = attention(x, context);
  EXPECT_TRUE(torch::allclose(packed.narrow(1, 4, 5), attention(x.narrow(1, 4, 5), ForwardContext{}), 1e-4, 1e-5));
  EXPECT_FALSE(torch::allclose(packed.narrow(1, 4, 5), attention(x, ForwardContext{}).narrow(1, 4, 5), 1e-2, 1e-2));
}

TEST(Attention, WithPaddingEqualsTheShorterText) {
  auto attention = make_attention(4, 4, 6);
  torch::NoGradGuard no_gradients;
  const auto x = torch::randn({2, 7, 24});
  ForwardContext context;
  context.lengths_B = torch::tensor({7, 3}, torch::kInt);
  const auto padded = attention(x, context);
  EXPECT_TRUE(torch::allclose(padded[1].narrow(0, 0, 3),
                              attention(x.narrow(0, 1, 1).narrow(1, 0, 3), ForwardContext{})[0], 1e-4, 1e-5));
}

/// Records everything it observes.
class Recorder : public Probe {
 public:
  void observe_attention(size_t layer, const AttentionInput& input) override {
    layers.push_back(layer);
    inputs.push_back(input);
  }
  std::vector<size_t> layers;
  std::vector<AttentionInput> inputs;
};

TEST(Attention, NormsEachQueryAndKeyHeadBeforeItTurns) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_gradients;
  const auto rotary = std::make_shared<RotaryCache>();
  Attention normed({.d_model = 24, .norm_eps = 1e-6}, layer(4, 2, 6, /*qk_norm=*/true), 0, rotary),
      plain({.d_model = 24, .norm_eps = 1e-6}, layer(4, 2, 6), 0, rotary);
  for (const auto& entry : weights_of(normed)) entry.weight.tensor().normal_(0, 0.3);
  const auto x = torch::randn({1, 1, 24}), weight = normed.qkv.weight.tensor();
  // At position 0 nothing turns and a query sees only its own key, so only the values matter.
  plain.qkv.weight.tensor().copy_(weight);
  plain.out.weight.tensor().copy_(normed.out.weight.tensor());
  EXPECT_TRUE(torch::allclose(normed(x, ForwardContext{}), plain(x, ForwardContext{}), 1e-5, 1e-6));
  // Only the direction of queries and keys matters; of values, direction and length.
  const auto longer = torch::randn({2, 7, 24});
  const auto before = normed(longer, ForwardContext{});
  weight.narrow(0, 0, 36) *= 5;
  EXPECT_TRUE(torch::allclose(normed(longer, ForwardContext{}), before, 1e-4, 1e-5));
  EXPECT_FALSE(torch::allclose(plain(longer, ForwardContext{}), before, 1e-2, 1e-2));
  // The input of attend(), computed by the definition.
  Recorder recorder;
  ForwardContext context;
  context.probe = &recorder;
  normed(longer, context);
  const auto q = at::linear(longer, weight).narrow(2, 0, 24).view({2, 7, 4, 6});
  const auto expected = q * (q.square().mean(-1, true) + 1e-6).rsqrt() * normed.q_norm.weight.tensor();
  EXPECT_TRUE(torch::allclose(recorder.inputs[0].q_BTHD.select(1, 0), expected.select(1, 0), 1e-4, 1e-5));
  EXPECT_TRUE(torch::allclose(recorder.inputs[0].q_BTHD.norm(2, -1), expected.norm(2, -1), 1e-4, 1e-5));
}

TEST(Attention, AddsABiasToItsOutputWhereItHasOne) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_gradients;
  const auto rotary = std::make_shared<RotaryCache>();
  auto config = layer(4, 2, 6);
  const Attention plain({.d_model = 24, .norm_eps = 1e-6}, config, 0, rotary);
  config.output_bias = true;
  const Attention biased({.d_model = 24, .norm_eps = 1e-6}, config, 0, rotary);
  const auto weights = weights_of(biased);
  for (const auto& entry : weights) entry.weight.tensor().normal_(0, 0.3);
  plain.qkv.weight.tensor().copy_(biased.qkv.weight.tensor());
  plain.out.weight.tensor().copy_(biased.out.weight.tensor());
  const auto x = torch::randn({2, 7, 24});
  EXPECT_TRUE(
      torch::allclose(biased(x, ForwardContext{}), plain(x, ForwardContext{}) + biased.out.bias.tensor(), 1e-5, 1e-6));
  EXPECT_EQ(weights.size(), weights_of(plain).size() + 1);
  EXPECT_EQ(weights.back().traits.role, WeightRole::bias);
  EXPECT_EQ(weights.back().tensors[0].name, "o_proj.bias");
}

TEST(Probe, IsShownWhatTheOutputIsComputedFrom) {
  torch::manual_seed(1);
  const torch::NoGradGuard no_gradients;
  Attention attention({.d_model = 24, .norm_eps = 1e-5}, layer(4, 2, 6), /*index=*/3, std::make_shared<RotaryCache>());
  for (const auto& entry : weights_of(attention)) entry.weight.tensor().normal_(0, 0.3);
  const auto x = torch::randn({2, 7, 24});
  Recorder recorder;
  ForwardContext context;
  context.lengths_B = torch::tensor({7, 3}, torch::kInt);
  context.documents_BT = torch::tensor({{0, 0, 0, 1, 1, 1, 1}, {0, 1, 1, 1, 1, 1, 1}}, torch::kInt);
  const auto unseen = attention(x, context);
  context.probe = &recorder;
  const auto seen = attention(x, context);
  EXPECT_TRUE(torch::equal(seen, unseen));
  ASSERT_EQ(recorder.layers, (std::vector<size_t>{3}));
  const auto again = attention.out(attend(recorder.inputs.back()).out_BTHE.reshape({2, 7, 24}));
  EXPECT_TRUE(torch::equal(again, seen));
}

TEST(Probe, SeesThePastOfACache) {
  auto attention = make_attention(4, 2, 6);
  const torch::NoGradGuard no_gradients;
  KvCache cache({layer(4, 2, 6)}, {});
  Recorder recorder;
  ForwardContext context;
  context.cache = &cache;
  context.probe = &recorder;
  for (const int64_t count : {4, 2}) {
    context.rows = {{.sequence = 0, .tokens = count}};
    context.first_position = cache.length();
    cache.begin(context.rows);
    attention(torch::randn({1, count, 24}), context);
    cache.end();
  }
  ASSERT_EQ(recorder.inputs.size(), 2u);
  EXPECT_EQ(recorder.inputs[1].q_BTHD.size(1), 2);
  EXPECT_EQ(recorder.inputs[1].kv.k_BGSD.size(2), 6);
}

TEST(Attention, RejectsKeyHeadsThatDoNotDivideAndDocumentsWithACache) {
  EXPECT_THROW(Attention({.d_model = 24}, layer(4, 3, 6), 0, std::make_shared<RotaryCache>()), InputError);
  auto attention = make_attention(4, 2, 6);
  KvCache cache({layer(4, 2, 6)}, {});
  ForwardContext context;
  context.cache = &cache;
  context.documents_BT = torch::zeros({1, 2}, torch::kInt);
  EXPECT_THROW(attention(torch::randn({1, 2, 24}), context), InputError);
}

TEST(KvCache, CountsBytesLayerByLayer) {
  const std::vector<LayerConfig> layers = {layer(2, 1, 12), layer(4, 4, 6)};
  EXPECT_EQ(kv_cache_bytes(layers, 10, torch::kBFloat16), 10 * 2 * (2 * 12 + 2 * 24));
  EXPECT_EQ(kv_cache_bytes(layers, 10, torch::kChar), 10 * 2 * (12 + 4 + 24 + 16)) << "a scale for each head";
}

}  // namespace
}  // namespace prism
