#include "prism/training/adamw.h"

#include <gtest/gtest.h>

#include <cmath>

#include "prism/core/error.h"
#include "prism/layers/linear.h"
#include "prism/training/learning_rate.h"

namespace prism {
namespace {

/// The published update, one number at a time.
struct Scalar {
  double weight, mean = 0, square = 0;
  int64_t steps = 0;
  void step(double gradient, double rate, const AdamWOptions& o, double decay) {
    ++steps;
    mean = o.beta1 * mean + (1 - o.beta1) * gradient;
    square = o.beta2 * square + (1 - o.beta2) * gradient * gradient;
    const double corrected_mean = mean / (1 - std::pow(o.beta1, steps)),
                 corrected_square = square / (1 - std::pow(o.beta2, steps));
    weight -= rate * (corrected_mean / (std::sqrt(corrected_square) + o.epsilon) + decay * weight);
  }
};

TEST(AdamW, FollowsThePublishedUpdateWithClippingAndDecaysMatricesOnly) {
  auto matrix = torch::full({1, 1}, 0.5).requires_grad_(true), vector = torch::full({1}, -0.25).requires_grad_(true);
  torch::OrderedDict<std::string, torch::Tensor> parameters;
  parameters.insert("matrix", matrix);
  parameters.insert("vector", vector);
  const AdamWOptions options{.weight_decay = 0.1, .clip = 1.0};
  AdamW optimizer(parameters, options);
  Scalar first{0.5}, second{-0.25};
  for (const auto& [a, b] : {std::pair{3.0, 4.0}, {0.3, -0.4}, {-2.0, 0.1}}) {
    matrix.mutable_grad() = torch::full({1, 1}, a);
    vector.mutable_grad() = torch::full({1}, b);
    const double norm = optimizer.gradient_norm();
    EXPECT_NEAR(norm, std::hypot(a, b), 1e-6);
    optimizer.step(0.01, norm);
    const double shrink = std::min(1.0, 1.0 / std::hypot(a, b));
    first.step(a * shrink, 0.01, options, 0.1);
    second.step(b * shrink, 0.01, options, 0.0);
    EXPECT_NEAR(matrix.item<double>(), first.weight, 1e-6);
    EXPECT_NEAR(vector.item<double>(), second.weight, 1e-6);
    EXPECT_FALSE(matrix.grad().defined());
  }
  EXPECT_EQ(optimizer.steps(), 3);
}

TEST(AdamW, MakesCopiesOfTheWeightsStale) {
  Linear linear(4, 4);
  torch::NoGradGuard no_gradients;
  linear->weight.normal_();
  const auto x = torch::randn({2, 4}).to(torch::kBFloat16);
  const auto before = linear(x);
  AdamW optimizer(linear->named_parameters(), {});
  linear->weight.mutable_grad() = torch::ones({4, 4});
  optimizer.step(0.5, optimizer.gradient_norm());
  EXPECT_GT((linear(x) - before).abs().max().item<float>(), 0.1);
  EXPECT_TRUE(torch::equal(linear->cast(torch::kBFloat16), linear->weight.to(torch::kBFloat16)));
}

TEST(AdamW, RejectsOptionsThatNoUpdateCanUse) {
  const torch::OrderedDict<std::string, torch::Tensor> none;
  EXPECT_THROW(AdamW(none, {.beta1 = 1.0}), InputError);
  EXPECT_THROW(AdamW(none, {.epsilon = 0}), InputError);
  EXPECT_THROW(AdamW(none, {.clip = -1}), InputError);
}

TEST(CosineLearningRate, RisesLinearlyAndEndsAtItsShare) {
  EXPECT_DOUBLE_EQ(cosine_learning_rate(1e-3, 0.1, 5, 10, 100), 5e-4);
  EXPECT_DOUBLE_EQ(cosine_learning_rate(1e-3, 0.1, 10, 10, 100), 1e-3);
  EXPECT_NEAR(cosine_learning_rate(1e-3, 0.1, 55, 10, 100), 5.5e-4, 1e-12);
  EXPECT_NEAR(cosine_learning_rate(1e-3, 0.1, 100, 10, 100), 1e-4, 1e-12);
  EXPECT_NEAR(cosine_learning_rate(1e-3, 0.1, 120, 10, 100), 1e-4, 1e-12);
  EXPECT_DOUBLE_EQ(cosine_learning_rate(1e-3, 0.1, 100, 100, 100), 1e-3) << "warm-up alone";
}

}  // namespace
}  // namespace prism
