// Attention over the kept heads alone equals attention that skips the other heads (attend() with kept_heads_BH).
#include "prism/attention/budget/packed_heads.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <functional>
#include <vector>

#include "prism/attention/attention.h"
#include "prism/core/error.h"
#include "prism/layers/initialise.h"

namespace prism {
namespace {

constexpr int64_t kModelWidth = 48, kTexts = 5, kTokens = 13;

struct PackedCase {
  const char* name;
  std::function<void(LayerConfig&)> change;
  bool causal = false, lengths = false, documents = false;
  torch::ScalarType type = torch::kFloat;
};

class PackedAttention : public testing::TestWithParam<PackedCase> {};

Attention drawn_attention(const PackedCase& made) {
  LayerConfig layer;
  layer.heads = layer.kv_heads = 6;
  layer.head_dim = 8;
  layer.rotary.kind = "none";
  layer.budget.kind = "learned";
  made.change(layer);
  Attention attention({.d_model = kModelWidth, .is_causal = made.causal, .budgets = 1}, layer, 0,
                      std::make_shared<RotaryCache>());
  const torch::NoGradGuard no_gradients;
  torch::manual_seed(7);
  for (const auto& entry : weights_of(attention)) entry.weight.tensor().normal_(0, 0.4);
  return attention;
}

torch::Tensor drawn_texts(torch::ScalarType type) {
  torch::manual_seed(8);
  return torch::randn({kTexts, kTokens, kModelWidth}).to(type);
}

TEST_P(PackedAttention, EqualsAttentionThatSkipsHeads) {
  const auto attention = drawn_attention(GetParam());
  const auto x_BTD = drawn_texts(GetParam().type);
  ForwardContext context;
  context.budget_tau = 0.5;
  if (GetParam().lengths) context.lengths_B = torch::tensor({13, 1, 7, 12, 4}, torch::kInt);
  if (GetParam().documents) {
    context.documents_BT = torch::arange(kTokens, torch::kInt).div(4, "floor").repeat({kTexts, 1});
    context.positions_BT = positions_in_documents(context.documents_BT);
  }
  // Gradients need the path that skips heads; without them, only kept heads are computed.
  const auto expected = attention(x_BTD, context).detach();
  const torch::NoGradGuard no_gradients;
  Budgets budgets(context.budget_tau);
  context.budgets = &budgets;
  auto found = attention(x_BTD, context);
  const auto kept = budgets.decisions()[0].kept_BH;
  ASSERT_TRUE(kept.any().item<bool>() && !kept.all().item<bool>());
  EXPECT_FALSE((kept == kept[0]).all().item<bool>()) << "texts keep different heads";
  auto difference = (found - expected).to(torch::kFloat);
  if (context.lengths_B.defined())
    for (int64_t b = 0; b < kTexts; ++b) difference[b].slice(0, context.lengths_B[b].item<int64_t>()).zero_();
  const double bound = GetParam().type == torch::kBFloat16 ? 0.03 : 1e-5;
  EXPECT_LE(difference.abs().max().item<double>(), bound * expected.to(torch::kFloat).abs().max().item<double>());
}

TEST_P(PackedAttention, FollowsChangesOfTheWeights) {
  const auto attention = drawn_attention(GetParam());
  const auto x_BTD = drawn_texts(GetParam().type);
  ForwardContext context;
  context.budget_tau = 0.5;
  const torch::NoGradGuard no_gradients;
  const auto before = attention(x_BTD, context);
  attention.qkv.weight.tensor().mul_(2);
  EXPECT_FALSE(at::equal(before, attention(x_BTD, context)));
  attention.qkv.weight.tensor().mul_(0.5);
  EXPECT_TRUE(at::equal(before, attention(x_BTD, context)));
  attention.out.weight.tensor().mul_(2);
  EXPECT_FALSE(at::equal(before, attention(x_BTD, context)));
}

INSTANTIATE_TEST_SUITE_P(
    Of, PackedAttention,
    testing::Values(PackedCase{"Plain", [](LayerConfig&) {}},
                    PackedCase{"WithBiases", [](LayerConfig& layer) { layer.qkv_bias = layer.output_bias = true; }},
                    PackedCase{"WithLengths", [](LayerConfig&) {}, false, true},
                    PackedCase{"WithGroupedQueries", [](LayerConfig& layer) { layer.kv_heads = 2; }},
                    PackedCase{"WithQkNormAndRotation",
                               [](LayerConfig& layer) {
                                 layer.qk_norm = true;
                                 layer.rotary.kind = "rope";
                               },
                               true},
                    PackedCase{"WithDocuments",
                               [](LayerConfig& layer) {
                                 layer.kv_heads = 3;
                                 layer.rotary.kind = "rope";
                               },
                               true, false, true},
                    PackedCase{"InBfloat16", [](LayerConfig& layer) { layer.output_bias = true; }, false, true, false,
                               torch::kBFloat16},
                    PackedCase{"InBfloat16WithGroupedQueries",
                               [](LayerConfig& layer) {
                                 layer.kv_heads = 2;
                                 layer.qkv_bias = true;
                                 layer.rotary.kind = "rope";
                               },
                               true, false, true, torch::kBFloat16},
                    PackedCase{"InBfloat16WithAnOddWidth",
                               [](LayerConfig& layer) {
                                 layer.head_dim = 5;
                                 layer.qkv_bias = true;
                               },
                               false, true, false, torch::kBFloat16}),
    [](const auto& made) { return made.param.name; });

TEST(PackedHeads, WeighHeadsAlikeWhereAllAreComputedWithoutGradients) {
  struct Way {
    const char* name;
    std::function<void(LayerConfig&)> change;
    bool probe;
  };
  const std::vector<Way> ways = {{"all heads kept",
                                  [](LayerConfig& layer) {
                                    layer.budget = {"fixed", 1};
                                  },
                                  false},
                                 {"a probe", [](LayerConfig&) {}, true},
                                 {"no projection", [](LayerConfig& layer) { layer.output_projection = false; }, false}};
  for (const auto& way : ways)
    for (const auto type : {torch::kFloat, torch::kBFloat16}) {
      SCOPED_TRACE(testing::Message() << way.name << ", " << c10::toString(type));
      const auto attention = drawn_attention({way.name, way.change});
      const auto x_BTD = drawn_texts(type);
      Probe probe;
      ForwardContext context;
      context.budget_tau = 0.5;
      if (way.probe) context.probe = &probe;
      const auto expected = attention(x_BTD, context).detach().to(torch::kFloat);  // w is a product of its own
      const torch::NoGradGuard no_gradients;
      const auto difference = attention(x_BTD, context).to(torch::kFloat) - expected;
      const double bound = type == torch::kBFloat16 ? 0.03 : 1e-5;
      EXPECT_LE(difference.abs().max().item<double>(), bound * expected.abs().max().item<double>());
    }
}

TEST(PackedHeads, FollowChangesOfABias) {
  const auto attention = drawn_attention({"", [](LayerConfig& layer) { layer.qkv_bias = layer.output_bias = true; }});
  const auto x_BTD = drawn_texts(torch::kFloat);
  ForwardContext context;
  context.budget_tau = 0.5;
  const torch::NoGradGuard no_gradients;
  for (const auto* bias : {&attention.qkv.bias, &attention.out.bias}) {
    const auto before = attention(x_BTD, context);
    bias->tensor().add_(1);
    EXPECT_FALSE(at::equal(before, attention(x_BTD, context)));
  }
}

TEST(PackedHeads, ComputesAGroupIfOneOfItsHeadsIsKept) {
  LayerConfig layer;
  layer.heads = 6;
  layer.kv_heads = 3;
  layer.head_dim = 8;
  const auto kept = torch::tensor({{1, 0, 0, 0, 0, 0}, {0, 0, 1, 1, 0, 1}}, torch::kLong).to(torch::kBool);
  const PackedHeads packed(kept, layer);
  EXPECT_EQ(packed.rows(), 3);
  EXPECT_TRUE(at::equal(packed.of_sequences(torch::tensor({5, 9})), torch::tensor({5, 9, 9})));
  EXPECT_FALSE(packed.of_sequences({}).defined());
}

TEST(PackedHeads, GivesTheSameBitsAgain) {
  const auto attention = drawn_attention({"", [](LayerConfig&) {}});
  const auto x_BTD = drawn_texts(torch::kFloat);
  ForwardContext context;
  context.budget_tau = 0.5;
  const torch::NoGradGuard no_gradients;
  const int threads = at::get_num_threads();
  std::vector<torch::Tensor> found;
  for (const int count : {1, 2}) {
    at::set_num_threads(count);
    found.push_back(attention(x_BTD, context));
    EXPECT_TRUE(at::equal(found.back(), attention(x_BTD, context)));
  }
  at::set_num_threads(threads);
  EXPECT_TRUE(at::allclose(found[0], found[1], 1e-5, 1e-6));
}

}  // namespace
}  // namespace prism
