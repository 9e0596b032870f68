// RMSNorm and LayerNorm in both places against LibTorch and their plain versions, and their gradients.
#include "prism/kernels/norm.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <tuple>
#include <vector>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/kernels/gradient_check.h"

namespace prism {
namespace {

using torch::Tensor;

double difference_of(const Tensor& a, const Tensor& b) {
  return (a.to(torch::kDouble) - b.to(torch::kDouble)).abs().max().item<double>();
}

/// Turns any output into a scalar with fixed random weights.
Tensor scalar_of(const Tensor& y, uint64_t seed) {
  torch::manual_seed(seed);
  return (y.to(torch::kDouble) * torch::randn(y.sizes(), torch::kDouble)).sum();
}

class BothNorms : public testing::TestWithParam<std::tuple<NormKind, bool>> {
 protected:
  static NormSettings settings(const Tensor& weight, const Tensor& bias) {
    return {.kind = std::get<0>(GetParam()), .weight = weight, .bias = bias, .is_post = std::get<1>(GetParam())};
  }

  /// x, branch, weight, bias.
  static std::vector<Tensor> leaves(int64_t rows, int64_t width) {
    torch::manual_seed(3);
    return {torch::randn({rows, width}) * 3 + 1, torch::randn({rows, width}), torch::randn({width}),
            torch::randn({width})};
  }

  /// A scalar of both results. @param out  dtype of the norm.
  static Tensor of_both(const std::vector<Tensor>& at, torch::ScalarType out) {
    const auto [stream, normed] = add_norm(at[0], at[1].to(out), settings(at[2], at[3]), out);
    return scalar_of(stream, 7) + scalar_of(normed, 8);
  }
};
INSTANTIATE_TEST_SUITE_P(, BothNorms,
                         testing::Combine(testing::Values(NormKind::rms, NormKind::layer), testing::Bool()),
                         [](const auto& tested) {
                           return std::string(std::get<0>(tested.param) == NormKind::rms ? "Rms" : "Layer") +
                                  (std::get<1>(tested.param) ? "Post" : "Pre");
                         });

TEST_P(BothNorms, EqualTheirPlainVersion) {
  for (const int64_t width : {1, 7, 8, 37, 64, 250}) {
    const auto at = leaves(130, width);
    for (const auto out : {torch::kFloat, torch::kBFloat16}) {
      const auto branch = at[1].to(out);
      const auto fast = add_norm(at[0], branch, settings(at[2], at[3]), out);
      const auto truth = add_norm_plain(at[0].to(torch::kDouble), branch.to(torch::kDouble),
                                        settings(at[2].to(torch::kDouble), at[3].to(torch::kDouble)), torch::kDouble);
      // The mean of up to 250 values near 10 and a few roundings after it, divided by deviations of at least sqrt(eps).
      const double largest = truth.normed.abs().max().item<double>();
      const double allowed = (width == 1 ? 1e3 : 1) * 64 * 0x1p-24 * (10 + largest);
      EXPECT_LE(difference_of(fast.stream, truth.stream), allowed) << width;
      EXPECT_LE(difference_of(fast.normed, truth.normed), allowed + (out == torch::kFloat ? 0 : 0x1p-8 * largest))
          << width;
      EXPECT_EQ(fast.stream.scalar_type(), torch::kFloat);
      EXPECT_EQ(fast.normed.scalar_type(), out);
    }
  }
}

TEST_P(BothNorms, HaveTheGradientsOfFiniteDifferences) {
  auto at = leaves(70, 6);
  for (auto& leaf : at) leaf = leaf.to(torch::kDouble);
  for (size_t i = 0; i < at.size(); ++i)
    expect_gradient(
        [&](const Tensor& moved) {
          auto shifted = at;
          shifted[i] = moved;
          return of_both(shifted, torch::kDouble);
        },
        at[i]);
}

TEST_P(BothNorms, HaveTheGradientsOfTheirPlainVersionInDouble) {
  const auto at = leaves(130, 37);
  const auto gradients = [&](torch::ScalarType type) {
    std::vector<Tensor> moved, found;
    for (const auto& leaf : at) moved.push_back(leaf.to(type).clone().requires_grad_(true));
    of_both(moved, type).backward();
    for (const auto& leaf : moved) found.push_back(leaf.grad().to(torch::kDouble));
    return found;
  };
  const auto fast = gradients(torch::kFloat), truth = gradients(torch::kDouble);
  // Rounding of sums over 37 features, and over 130 rows for the weights, with terms of size 10.
  for (size_t i = 0; i < at.size(); ++i) EXPECT_LE(difference_of(fast[i], truth[i]), 130 * 0x1p-24 * 10) << i;
}

TEST_P(BothNorms, ReachTheirInputsThroughEitherResult) {
  const auto at = leaves(130, 37);
  for (const auto out : {torch::kFloat, torch::kBFloat16})
    for (const bool through_stream : {true, false}) {
      std::vector<Tensor> moved;
      for (const auto& leaf : at) moved.push_back(leaf.clone().requires_grad_(true));
      const auto loss = [&](const NormedSum& result) {
        return scalar_of(through_stream ? result.stream : result.normed, 9);
      };
      const auto inputs = [](const std::vector<Tensor>& from) { return torch::autograd::variable_list(from); };
      const auto gradients_of = [&](const NormedSum& result) {
        return torch::autograd::grad({loss(result)}, inputs(moved), {}, false, false, /*allow_unused=*/true);
      };
      const auto fast = gradients_of(add_norm(moved[0], moved[1].to(out), settings(moved[2], moved[3]), out));
      const auto plain = gradients_of(add_norm_plain(moved[0], moved[1].to(out), settings(moved[2], moved[3]), out));
      for (size_t i = 0; i < moved.size(); ++i) {
        const auto of_plain = plain[i].defined() ? plain[i] : torch::zeros_like(moved[i]);
        const auto of_fast = fast[i].defined() ? fast[i] : torch::zeros_like(moved[i]);
        const double size = of_plain.abs().max().item<double>();
        EXPECT_LE(difference_of(of_fast, of_plain), (out == torch::kFloat ? 1e-5 : 0x1p-7) * (1 + size)) << i;
      }
    }
}

TEST_P(BothNorms, GiveTheSameBitsForEveryNumberOfThreads) {
  const auto run = [&](int threads) {
    const int before = at::get_num_threads();
    at::set_num_threads(threads);
    std::vector<Tensor> moved, results;
    for (const auto& leaf : leaves(300, 250)) moved.push_back(leaf.clone().requires_grad_(true));
    of_both(moved, torch::kBFloat16).backward();
    at::set_num_threads(before);
    for (const auto& leaf : moved) results.push_back(leaf.grad());
    return results;
  };
  const auto one = run(1), three = run(3);
  for (size_t i = 0; i < one.size(); ++i) EXPECT_TRUE(torch::equal(one[i], three[i])) << i;
}

/// Without gradients the kernel is called directly, not through autograd.
TEST_P(BothNorms, GiveTheSameBitsWithAndWithoutGradients) {
  for (const auto out : {torch::kFloat, torch::kBFloat16})
    for (const bool has_branch : {true, false}) {
      const auto at = leaves(5, 250);
      const auto branch = has_branch ? at[1].to(out) : Tensor();
      const auto plain = add_norm(at[0], branch, settings(at[2], at[3]), out);
      const auto recorded = add_norm(at[0].clone().requires_grad_(true), branch, settings(at[2], at[3]), out);
      EXPECT_FALSE(plain.normed.requires_grad());
      EXPECT_TRUE(recorded.normed.requires_grad());
      EXPECT_TRUE(torch::equal(plain.normed, recorded.normed) && torch::equal(plain.stream, recorded.stream));
      const torch::NoGradGuard no_gradients;
      const auto guarded = add_norm(at[0].clone().requires_grad_(true), branch, settings(at[2], at[3]), out);
      EXPECT_TRUE(torch::equal(guarded.normed, plain.normed) && torch::equal(guarded.stream, plain.stream));
    }
}

TEST(LayerNorm, IsLibTorchs) {
  torch::manual_seed(1);
  const auto x = torch::randn({2, 65, 48}) * 3 + 2, weight = torch::randn({48}), bias = torch::randn({48});
  const auto truth =
      at::layer_norm(x.to(torch::kDouble), {48}, weight.to(torch::kDouble), bias.to(torch::kDouble), 1e-5);
  const NormSettings settings{.kind = NormKind::layer, .weight = weight, .bias = bias};
  const auto [stream, normed] = add_norm(x, {}, settings, torch::kFloat);
  EXPECT_TRUE(stream.is_same(x));
  EXPECT_LE(difference_of(normed, truth), 16 * 0x1p-24 * 10);
  auto wrong = x.clone();
  wrong[1][64][47] += 0.01;
  EXPECT_GT(difference_of(add_norm(wrong, {}, settings, torch::kFloat).normed, truth), 16 * 0x1p-24 * 10)
      << "one wrong value exceeds the bound";
}

TEST(LayerNorm, OfPostNormIsTheStream) {
  torch::manual_seed(2);
  const auto x = torch::randn({5, 24}), weight = torch::randn({24}), bias = torch::randn({24});
  const auto branch = torch::randn({5, 24}).to(torch::kBFloat16);
  const NormSettings settings{.kind = NormKind::layer, .weight = weight, .bias = bias, .is_post = true};
  const auto [stream, normed] = add_norm(x, branch, settings, torch::kBFloat16);
  EXPECT_LE(difference_of(stream, at::layer_norm(x + branch, {24}, weight, bias, 1e-5)), 16 * 0x1p-24 * 10);
  EXPECT_TRUE(torch::equal(normed, stream.to(torch::kBFloat16)));
}

TEST(LayerNorm, RejectsABiasOfAnotherWidth) {
  const NormSettings settings{.kind = NormKind::layer, .weight = torch::ones({4}), .bias = torch::ones({5})};
  EXPECT_REFUSED(add_norm(torch::ones({2, 4}), {}, settings, torch::kFloat), "found [5]");
  EXPECT_REFUSED(add_norm(torch::ones({2, 4}), {}, {.kind = NormKind::layer, .weight = {}}, torch::kFloat),
                 "found none");
}

}  // namespace
}  // namespace prism
