#include "prism/layers/pooling.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

namespace prism {
namespace {

TEST(MeanOfRows, IsThatOfTheFirstPositions) {
  torch::manual_seed(1);
  for (const auto type : {torch::kFloat, torch::kBFloat16, torch::kDouble}) {
    auto x_BTD = torch::randn({4, 11, 150}).to(type);
    const auto lengths_B = torch::tensor({11, 1, 6, 0}, torch::kInt);
    for (int64_t b = 0; b < 4; ++b) x_BTD[b].slice(0, lengths_B[b].item<int64_t>()).fill_(NAN);  // padding
    const auto sums = type == torch::kDouble ? torch::kDouble : torch::kFloat;
    const auto found = mean_of_rows(x_BTD, lengths_B, sums);
    EXPECT_EQ(found.scalar_type(), sums);
    for (int64_t b = 0; b < 3; ++b) {
      const auto expected = x_BTD[b].slice(0, 0, lengths_B[b].item<int64_t>()).to(torch::kDouble).mean(0);
      EXPECT_TRUE(at::allclose(found[b].to(torch::kDouble), expected, 1e-5, 1e-6)) << b;
    }
    EXPECT_TRUE((found[3] == 0).all().item<bool>()) << "no tokens";
    const auto first = x_BTD.slice(0, 0, 1);
    EXPECT_TRUE(at::allclose(mean_of_rows(first, {}, sums), first.to(sums).mean(1), 1e-5, 1e-6));
  }
}

TEST(MeanOfRows, HasTheSameBitsWithGradients) {
  torch::manual_seed(2);
  const auto lengths_B = torch::tensor({9, 4, 7}, torch::kInt);
  for (const auto type : {torch::kFloat, torch::kBFloat16}) {
    const auto x_BTD = torch::randn({3, 9, 130}).to(type);
    for (const auto& lengths : {lengths_B, torch::Tensor()}) {
      const auto with = mean_of_rows(x_BTD.detach().requires_grad_(), lengths, torch::kFloat);
      EXPECT_TRUE(with.requires_grad());
      EXPECT_TRUE(at::equal(with.detach(), mean_of_rows(x_BTD, lengths, torch::kFloat)));
    }
  }
}

TEST(MeanOfRows, HasTheGradientsOfLibTorch) {
  torch::manual_seed(3);
  const auto weight_BD = torch::randn({3, 130});
  for (const auto& lengths : {torch::tensor({9, 4, 0}, torch::kLong), torch::Tensor()}) {
    auto x_BTD = torch::randn({3, 9, 130}).requires_grad_(), y_BTD = x_BTD.detach().to(torch::kDouble).requires_grad_();
    (mean_of_rows(x_BTD, lengths, torch::kFloat) * weight_BD).sum().backward();
    (mean_of_rows(y_BTD, lengths, torch::kDouble) * weight_BD).sum().backward();
    EXPECT_TRUE(at::allclose(x_BTD.grad().to(torch::kDouble), y_BTD.grad(), 1e-5, 1e-6));
  }
}

}  // namespace
}  // namespace prism
