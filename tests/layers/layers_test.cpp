#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <optional>

#include "prism/core/error.h"
#include "prism/kernels/swiglu.h"
#include "prism/layers/embedding.h"
#include "prism/layers/initialise.h"
#include "prism/layers/mlp.h"
#include "prism/layers/norm.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

std::optional<torch::Tensor> optional_of(const torch::Tensor& tensor) {
  return tensor.defined() ? std::optional(tensor) : std::nullopt;
}

TEST(CastWeight, IsTheWeightItselfInItsOwnDtypeAndFollowsItInOthers) {
  auto weight = torch::randn({3, 4});
  CastWeight cast;
  EXPECT_TRUE(cast.get(weight, torch::kFloat).is_same(weight));
  const auto* memory = cast.get(weight, torch::kBFloat16).const_data_ptr();
  weight.add_(1);
  EXPECT_TRUE(torch::equal(cast.get(weight, torch::kBFloat16), weight.to(torch::kBFloat16)));
  EXPECT_EQ(cast.get(weight, torch::kBFloat16).const_data_ptr(), memory) << "the copy is refreshed in place";
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

TEST(Mlp, IsSwigluBetweenItsProjections) {
  Mlp mlp(6, FfnConfig{.kind = "swiglu", .width = 10});
  torch::NoGradGuard no_gradients;
  for (auto& parameter : mlp->parameters()) parameter.normal_();
  const auto x = torch::randn({2, 3, 6});
  const auto gate = torch::matmul(x, mlp->gate_up->weight.narrow(0, 0, 10).t()),
             up = torch::matmul(x, mlp->gate_up->weight.narrow(0, 10, 10).t());
  const auto expected = torch::matmul(torch::silu(gate) * up, mlp->down->weight.t());
  EXPECT_TRUE(torch::allclose(mlp(x), expected, 1e-4, 1e-5));
}

TEST(Mlp, IsAsManyReluLayersAsItIsDeep) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat, torch::kDouble, torch::kBFloat16})
    for (const int64_t depth : {1, 2, 3})
      for (const bool bias : {false, true}) {
        Mlp mlp(6, FfnConfig{.kind = "relu", .width = 70, .depth = depth, .bias = bias});
        EXPECT_EQ(mlp->parameters().size(), static_cast<size_t>(depth + 1) * (bias ? 2 : 1));
        if (type == torch::kDouble) mlp->to(type);
        {
          torch::NoGradGuard no_gradients;
          for (auto& parameter : mlp->parameters()) parameter.normal_(0, 0.3);
        }
        const auto x = torch::randn({5, 31, 6}).to(type).requires_grad_(true);
        const auto found = mlp(x);
        found.to(torch::kFloat).square().sum().backward();

        // The same from elementary operations, in the dtype of the weights.
        auto plain = Mlp(6, FfnConfig{.kind = "relu", .width = 70, .depth = depth, .bias = bias});
        if (type == torch::kDouble) plain->to(type);
        const auto weights = mlp->parameters();
        for (size_t i = 0; i < weights.size(); ++i) plain->parameters()[i].set_data(weights[i].detach().clone());
        auto leaf = x.detach().to(weights[0].scalar_type()).clone().requires_grad_(true);
        torch::Tensor h = leaf;
        for (const auto& layer : plain->inner) h = torch::relu(at::linear(h, layer->weight, optional_of(layer->bias)));
        const auto expected = at::linear(h, plain->down->weight, optional_of(plain->down->bias));
        expected.to(torch::kFloat).square().sum().backward();

        const auto close = [&](const torch::Tensor& a, const torch::Tensor& b) {
          // A feature near 0 may be rounded to the other side of it.
          const double tolerance = type == torch::kBFloat16 ? 0.1 : type == torch::kFloat ? 1e-5 : 1e-10;
          return (a.to(torch::kDouble) - b.to(torch::kDouble)).norm().item<double>() <=
                 tolerance * b.to(torch::kDouble).norm().item<double>();
        };
        EXPECT_TRUE(close(found, expected)) << type << " " << depth << " " << bias;
        EXPECT_TRUE(close(x.grad(), leaf.grad())) << type << " " << depth << " " << bias;
        for (size_t i = 0; i < weights.size(); ++i)
          EXPECT_TRUE(close(weights[i].grad(), plain->parameters()[i].grad())) << type << " " << depth << " " << i;
      }
}

TEST(Mlp, RefusesUnknownKindsAndWhatAKindDoesNotHave) {
  EXPECT_REFUSED(check(FfnConfig{.kind = "gelu", .width = 10}, 3), "layer 3: expected ffn.kind swiglu or relu");
  EXPECT_REFUSED(check(FfnConfig{.kind = "swiglu", .width = 0}, 0), "ffn.width");
  EXPECT_REFUSED(check(FfnConfig{.kind = "relu", .width = 4, .depth = 0}, 0), "ffn.depth of at least 1");
  EXPECT_REFUSED(check(FfnConfig{.kind = "swiglu", .width = 4, .depth = 2}, 0), "or choose relu");
  EXPECT_REFUSED(check(FfnConfig{.kind = "swiglu", .width = 4, .bias = true}, 0), "no ffn.bias for swiglu");
}

TEST(Embedding, GivesRowsAndSumsTheirGradients) {
  Embedding embedding(5, 3);
  {
    torch::NoGradGuard no_gradients;
    embedding->weight.normal_();
  }
  const auto rows = embedding(torch::tensor({4, 1, 4}, torch::kLong));
  EXPECT_TRUE(torch::equal(rows[0], embedding->weight[4]));
  rows.sum().backward();
  EXPECT_EQ(embedding->weight.grad()[4][0].item<float>(), 2.0f);
  EXPECT_EQ(embedding->weight.grad()[0][0].item<float>(), 0.0f);
}

TEST(RmsNormModule, StartsAsPlainNormalisation) {
  RmsNorm norm(4, 0.0);
  const auto y = norm(torch::tensor({{3.0f, 3.0f, -3.0f, 3.0f}}), torch::Tensor(), torch::kFloat).normed;
  EXPECT_TRUE(torch::allclose(y, torch::tensor({{1.0f, 1.0f, -1.0f, 1.0f}})));
}

}  // namespace
}  // namespace prism
