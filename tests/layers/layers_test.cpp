#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/layers/embedding.h"
#include "prism/layers/glu_mlp.h"
#include "prism/layers/initialise.h"
#include "prism/layers/norm.h"
#include "prism/layers/relu_mlp.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

std::optional<torch::Tensor> optional_of(const Weight& weight) {
  return weight ? std::optional(weight.tensor()) : std::nullopt;
}

void fill_normal(const std::vector<WeightEntry>& weights, double std) {
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : weights) entry.weight.tensor().normal_(0, std);
}

TEST(Weight, IsItselfInItsOwnDtypeAndItsCopyFollowsItInOthers) {
  const Weight weight({3, 4}, /*fill=*/0.5);
  EXPECT_TRUE(weight.cast(torch::kFloat).is_same(weight.tensor()));
  const auto* memory = weight.cast(torch::kBFloat16).const_data_ptr();
  {
    const torch::NoGradGuard no_gradients;
    weight.tensor().add_(1);
  }
  EXPECT_TRUE(torch::equal(weight.cast(torch::kBFloat16), weight.tensor().to(torch::kBFloat16)));
  EXPECT_EQ(weight.cast(torch::kBFloat16).const_data_ptr(), memory) << "the copy is refreshed in place";
}

TEST(Weight, IsSharedByItsHandlesAndSumsTheGradientsOfTheirProducts) {
  torch::manual_seed(2);
  Linear first(5, 7), second(5, 7);
  fill_normal(weights_of(first), 1);
  second.weight = first.weight;
  EXPECT_TRUE(first.weight == second.weight);
  EXPECT_FALSE(first.weight == Linear(5, 7).weight);
  const auto x = torch::randn({3, 5}), y = torch::randn({4, 5});
  (first(x).sum() + 2 * second(y).sum()).backward();
  const auto expected = (x.sum(0) + 2 * y.sum(0)).expand({7, 5});
  EXPECT_TRUE(torch::allclose(first.weight.tensor().grad(), expected, 1e-5, 1e-5));
  first.weight.to(torch::kDouble);
  EXPECT_EQ(second.weight.tensor().scalar_type(), torch::kDouble);
  EXPECT_TRUE(second.weight.tensor().requires_grad());
}

/// Two projections that may share their weight, and a norm.
struct Pair {
  Linear a{{.in = 4, .out = {{{"q", "k"}, 3}, {{"v"}, 2}}, .bias = true}}, b{4, 8};
  Norm norm{NormOptions{.width = 4}};
  void visit(WeightVisitor& v) const {
    v.layer(0, "a", "first", a);
    v.module("norm", "last", norm);
    v.layer(1, "b", "second", b);
  }
};

TEST(WeightList, SaysOfEveryWeightWhatItIs) {
  const auto weights = weights_of(Pair());
  std::vector<std::string> names, files;
  for (const auto& entry : weights) {
    names.push_back(entry.name);
    for (const auto& tensor : entry.tensors)
      files.push_back(fmt::format("{} {}+{}", tensor.name, tensor.first_row, tensor.rows));
  }
  EXPECT_EQ(names, (std::vector<std::string>{"a.weight", "a.bias", "norm.weight", "b.weight"}));
  EXPECT_EQ(files, (std::vector<std::string>{"first.q.weight 0+3", "first.k.weight 3+3", "first.v.weight 6+2",
                                             "first.q.bias 0+3", "first.k.bias 3+3", "first.v.bias 6+2",
                                             "last.weight 0+4", "second.weight 0+8"}));
  EXPECT_EQ(weights[0].traits.fan_in, 4);
  EXPECT_EQ(weights[0].layer(), 0u);
  EXPECT_EQ(weights[1].traits.role, WeightRole::bias);
  EXPECT_EQ(weights[1].products(), 0);
  EXPECT_EQ(weights[2].layer(), std::nullopt);
  EXPECT_EQ(weights[3].products(), 1);
}

TEST(WeightList, HasASharedWeightOnceWithAllItsUses) {
  Pair pair;
  pair.b = pair.a;
  const auto weights = weights_of(pair);
  ASSERT_EQ(weights.size(), 3u);
  EXPECT_EQ(weights[0].products(), 2);
  ASSERT_EQ(weights[0].uses.size(), 2u);
  EXPECT_EQ(weights[0].uses[1].layer, 1u);
}

TEST(WeightList, RefusesASharedWeightThatIsDescribedInTwoWays) {
  Pair pair;
  pair.b.weight = pair.a.weight;  // one use has three matrices, the other has one
  EXPECT_THROW(weights_of(pair), InternalError);
}

TEST(InitialiseNormal, DependsOnSeedAndNameAndNothingElse) {
  const auto draw = [](uint64_t seed, const char* name) {
    auto weight = torch::empty({200, 50});
    initialise_normal(weight, 0.02, seed, name);
    return weight;
  };
  const auto first = draw(1, "a");
  EXPECT_TRUE(torch::equal(first, draw(1, "a")));
  EXPECT_FALSE(torch::equal(first, draw(2, "a")));
  EXPECT_FALSE(torch::equal(first, draw(1, "b")));
  // 10,000 values: mean within 5 standard errors, deviation within 5%.
  EXPECT_NEAR(first.mean().item<double>(), 0.0, 5 * 0.02 / 100);
  EXPECT_NEAR(first.std().item<double>(), 0.02, 0.001);
}

TEST(FeedForward, IsAGatedUnitBetweenItsProjections) {
  const std::pair<FfnConfig, size_t> kinds[] = {{{.kind = "swiglu", .width = 10}, 0},
                                                {{.kind = "swiglu", .width = 10, .bias = true}, 2},
                                                {{.kind = "g2lu", .width = 10}, 0},
                                                {{.kind = "g2lu", .width = 10, .gate_bias = true}, 1}};
  for (const auto& [config, biases] : kinds)
    for (const bool shares : {false, true}) {
      GluMlp mlp(6, config, shares);
      torch::NoGradGuard no_gradients;
      const auto weights = weights_of(mlp);
      // A part that shares has a product, and hence a bias, of its own for W_up.
      EXPECT_EQ(weights.size(), (shares ? 3u : 2u) + biases + (config.bias && shares ? 1u : 0u));
      fill_normal(weights, 1);
      std::map<std::string, torch::Tensor> values;  // by the tensor's name in files
      for (const auto& entry : weights)
        for (const auto& tensor : entry.tensors) values[tensor.name] = tensor.of(entry.weight.tensor());
      const auto x = torch::randn({2, 3, 6});
      const auto product = [&](const torch::Tensor& of, const std::string& name) {
        const auto bias = values.find(name + ".bias");
        const auto y = torch::matmul(of, values.at(name + ".weight").t());
        return bias == values.end() ? y : y + bias->second;
      };
      auto z = product(x, "gate_proj");
      if (config.kind == "g2lu") z = z * torch::silu(product(x, "inner_gate_proj"));
      const auto expected = product(torch::silu(z) * product(x, "up_proj"), "down_proj");
      EXPECT_TRUE(torch::allclose(mlp.forward(x), expected, 1e-4, 1e-5)) << config.kind << " " << shares;
    }
}

TEST(FeedForward, IsAsManyReluLayersAsItIsDeep) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16})
    for (const int64_t depth : {1, 2, 3})
      for (const bool bias : {false, true}) {
        const ReluMlp mlp(6, FfnConfig{.kind = "relu", .width = 70, .depth = depth, .bias = bias});
        const auto weights = weights_of(mlp);
        EXPECT_EQ(weights.size(), static_cast<size_t>(depth + 1) * (bias ? 2 : 1));
        if (type == torch::kDouble) convert_weights(weights, type);
        fill_normal(weights, 0.3);
        const auto x = torch::randn({5, 31, 6}).to(type).requires_grad_(true);
        const auto found = mlp.forward(x);
        found.to(torch::kFloat).square().sum().backward();

        // The same with elementary operations, in the dtype of the weights.
        const ReluMlp plain(6, FfnConfig{.kind = "relu", .width = 70, .depth = depth, .bias = bias});
        const auto plain_weights = weights_of(plain);
        for (size_t i = 0; i < weights.size(); ++i)
          plain_weights[i].weight.tensor().set_data(weights[i].weight.tensor().detach().clone());
        auto leaf = x.detach().to(weights[0].weight.tensor().scalar_type()).clone().requires_grad_(true);
        torch::Tensor h = leaf;
        for (const auto& layer : plain.inner)
          h = torch::relu(at::linear(h, layer.weight.tensor(), optional_of(layer.bias)));
        const auto expected = at::linear(h, plain.down.weight.tensor(), optional_of(plain.down.bias));
        expected.to(torch::kFloat).square().sum().backward();

        const auto close = [&](const torch::Tensor& a, const torch::Tensor& b) {
          // Rounding may change the sign of a feature near 0.
          const double tolerance = type == torch::kBFloat16 ? 0.1 : type == torch::kFloat ? 1e-5 : 1e-10;
          return (a.to(torch::kDouble) - b.to(torch::kDouble)).norm().item<double>() <=
                 tolerance * b.to(torch::kDouble).norm().item<double>();
        };
        EXPECT_TRUE(close(found, expected)) << type << " " << depth << " " << bias;
        EXPECT_TRUE(close(x.grad(), leaf.grad())) << type << " " << depth << " " << bias;
        for (size_t i = 0; i < weights.size(); ++i)
          EXPECT_TRUE(close(weights[i].weight.tensor().grad(), plain_weights[i].weight.tensor().grad()))
              << type << " " << depth << " " << i;
      }
}

TEST(FeedForward, RefusesUnknownKindsAndWhatAKindDoesNotHave) {
  EXPECT_REFUSED(check(FfnConfig{.kind = "mixture", .width = 10}, 3),
                 "layer 3: expected ffn.kind swiglu, g2lu, relu or gelu");
  EXPECT_REFUSED(check(FfnConfig{.kind = "swiglu", .width = 0}, 0), "ffn.width");
  EXPECT_REFUSED(check(FfnConfig{.kind = "relu", .width = 4, .depth = 0}, 0), "ffn.depth within 1-1000");
  EXPECT_REFUSED(check(FfnConfig{.kind = "relu", .width = 4, .depth = 100000000}, 2), "layer 2: expected ffn.depth");
  EXPECT_REFUSED(check(FfnConfig{.kind = "swiglu", .width = 4, .depth = 2}, 0), "or choose relu");
  EXPECT_REFUSED(check(FfnConfig{.kind = "g2lu", .width = 4, .bias = true}, 0), "no ffn.bias for g2lu");
  EXPECT_REFUSED(check(FfnConfig{.kind = "relu", .width = 4, .gate_bias = true}, 0), "no ffn.gate_bias for relu");
}

TEST(Embedding, GivesRowsAndSumsTheirGradients) {
  Embedding embedding(5, 3);
  {
    torch::NoGradGuard no_gradients;
    embedding.weight.tensor().normal_();
  }
  const auto rows = embedding(torch::tensor({4, 1, 4}, torch::kLong));
  EXPECT_TRUE(torch::equal(rows[0], embedding.weight.tensor()[4]));
  rows.sum().backward();
  EXPECT_EQ(embedding.weight.tensor().grad()[4][0].item<float>(), 2.0f);
  EXPECT_EQ(embedding.weight.tensor().grad()[0][0].item<float>(), 0.0f);
}

TEST(RmsNormModule, StartsAsPlainNormalisation) {
  const Norm norm({.width = 4, .eps = 0.0});
  const auto y = norm(torch::tensor({{3.0f, 3.0f, -3.0f, 3.0f}}), torch::Tensor(), torch::kFloat).normed;
  EXPECT_TRUE(torch::allclose(y, torch::tensor({{1.0f, 1.0f, -1.0f, 1.0f}})));
}

}  // namespace
}  // namespace prism
