#include "prism/layers/gelu_mlp.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/core/message_of.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

/// GELU by the error function of the standard library.
torch::Tensor gelu_of(const torch::Tensor& a) {
  auto result = a.clone();
  auto* values = result.data_ptr<double>();
  for (int64_t i = 0; i < result.numel(); ++i) values[i] *= 0.5 * (1 + std::erf(values[i] / std::sqrt(2.0)));
  return result;
}

class GeluMlpTest : public testing::TestWithParam<bool> {
 protected:
  GeluMlpTest() : weights_(weights_of(mlp_)) {
    torch::manual_seed(1);
    convert_weights(weights_, torch::kDouble);
    const torch::NoGradGuard no_gradients;
    for (const auto& entry : weights_) entry.weight.tensor().normal_(0, 0.5);
  }

  GeluMlp mlp_{6, {.kind = "gelu", .width = 10, .bias = GetParam()}};
  std::vector<WeightEntry> weights_;
};

TEST_P(GeluMlpTest, IsTheFormula) {
  const torch::NoGradGuard no_gradients;
  const auto x = torch::randn({2, 3, 6}, torch::kDouble);
  auto inner = x.matmul(mlp_.up.weight.tensor().t());
  if (GetParam()) inner = inner + mlp_.up.bias.tensor();
  auto expected = gelu_of(inner.contiguous()).matmul(mlp_.down.weight.tensor().t());
  if (GetParam()) expected = expected + mlp_.down.bias.tensor();
  std::vector<torch::Tensor> hidden;
  EXPECT_TRUE(torch::allclose(mlp_.forward(x, &hidden), expected, 1e-12, 1e-12));
  ASSERT_EQ(hidden.size(), 1u);
  EXPECT_TRUE(torch::allclose(hidden[0], gelu_of(inner.contiguous()), 1e-12, 1e-12));
}

TEST_P(GeluMlpTest, HasTheGradientsOfFiniteDifferences) {
  const auto x = torch::randn({4, 6}, torch::kDouble);
  const auto loss = [&] { return mlp_.forward(x).square().sum(); };
  loss().backward();
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : weights_) {
    auto values = entry.weight.tensor().view({-1});
    for (const int64_t i : {int64_t{0}, values.numel() / 2, values.numel() - 1}) {
      const double value = values[i].item<double>(), step = 1e-6;
      values[i] = value + step;
      const double above = loss().item<double>();
      values[i] = value - step;
      const double below = loss().item<double>();
      values[i] = value;
      const double slope = (above - below) / (2 * step);
      EXPECT_NEAR(entry.weight.tensor().grad().view({-1})[i].item<double>(), slope, 1e-6 * (1 + std::abs(slope)))
          << entry.name << " " << i;
    }
  }
}

TEST_P(GeluMlpTest, ListsItsWeights) {
  std::vector<std::string> names;
  for (const auto& entry : weights_) names.push_back(entry.name + " " + entry.tensors[0].name);
  if (GetParam())
    EXPECT_EQ(names, (std::vector<std::string>{"up.weight up_proj.weight", "up.bias up_proj.bias",
                                               "down.weight down_proj.weight", "down.bias down_proj.bias"}));
  else
    EXPECT_EQ(names, (std::vector<std::string>{"up.weight up_proj.weight", "down.weight down_proj.weight"}));
}

INSTANTIATE_TEST_SUITE_P(WithAndWithoutBias, GeluMlpTest, testing::Bool());

TEST(FfnConfig, KnowsGelu) {
  check(FfnConfig{.kind = "gelu", .width = 10, .bias = true}, 0);
  EXPECT_REFUSED(check(FfnConfig{.kind = "gelu", .width = 10, .depth = 2}, 0), "or choose relu");
}

}  // namespace
}  // namespace prism
