#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/kernels/swiglu.h"
#include "prism/layers/embedding.h"
#include "prism/layers/initialise.h"
#include "prism/layers/mlp.h"
#include "prism/layers/norm.h"

namespace prism {
namespace {

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

TEST(Mlp, RejectsUnknownKindsAndEmptyWidths) {
  EXPECT_THROW(Mlp(6, FfnConfig{.kind = "relu", .width = 10}), InputError);
  EXPECT_THROW(Mlp(6, FfnConfig{.kind = "swiglu", .width = 0}), InputError);
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
