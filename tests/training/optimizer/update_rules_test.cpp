#include "prism/training/optimizer/optimizer.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>

#include "prism/layers/linear.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

/// The published update for a single number.
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

/// An optimizer with one rule for the given weights.
template <class Rule, class Options>
Optimizer optimizer_of(const std::vector<TrainedWeight>& weights, const Options& options, double clip) {
  std::vector<std::unique_ptr<UpdateRule>> rules;
  rules.push_back(std::make_unique<Rule>(weights, options));
  return {std::move(rules), clip};
}

TEST(AdamW, FollowsThePublishedUpdateWithClippingAndDecaysOnlyWhatDecays) {
  auto matrix = torch::full({1, 1}, 0.5).requires_grad_(true), vector = torch::full({1}, -0.25).requires_grad_(true);
  const AdamWOptions options{.weight_decay = 0.1};
  auto optimizer = optimizer_of<AdamW>({{"matrix", matrix}, {"vector", vector, /*decays=*/false}}, options, 1.0);
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

TEST(Sgd, AddsMomentumAndDecayToClippedGradients) {
  for (const bool nesterov : {false, true}) {
    auto weight = torch::full({1, 1}, 0.5).requires_grad_(true);
    auto optimizer = optimizer_of<Sgd>({{"weight", weight}},
                                       SgdOptions{.momentum = 0.9, .weight_decay = 0.1, .nesterov = nesterov}, 1.0);
    double expected = 0.5, momentum = 0;
    for (const double given : {3.0, 0.4, -2.0}) {
      weight.mutable_grad() = torch::full({1, 1}, given);
      optimizer.step(0.01, std::abs(given));
      const double gradient = given / std::max(1.0, std::abs(given)) + 0.1 * expected;
      momentum = 0.9 * momentum + gradient;
      expected -= 0.01 * (nesterov ? gradient + 0.9 * momentum : momentum);
      EXPECT_NEAR(weight.item<double>(), expected, 1e-6) << nesterov;
    }
  }
}

TEST(Sgd, WithoutMomentumRemembersNothing) {
  auto weight = torch::ones({2}).requires_grad_(true);
  auto optimizer = optimizer_of<Sgd>({{"weight", weight}}, SgdOptions{.momentum = 0}, 0);
  weight.mutable_grad() = torch::full({2}, 3.0);
  optimizer.step(0.1, 5);
  EXPECT_TRUE(torch::allclose(weight, torch::full({2}, 0.7)));
  EXPECT_TRUE(optimizer.state().empty());
}

/// With M = U S V^T in double precision: U^T found V, which is diagonal if `found` has the singular vectors of M.
torch::Tensor singular_values_between(const torch::Tensor& matrix, const torch::Tensor& found) {
  const auto [u, s, v] = at::svd(matrix.to(torch::kDouble));
  return u.t().mm(found.to(torch::kDouble)).mm(v);
}

TEST(Orthogonalise, KeepsTheSingularVectorsAndSetsTheirValuesNearOne) {
  torch::manual_seed(3);
  for (const auto& [rows, columns] : {std::pair{24, 24}, {16, 40}, {40, 16}, {1, 8}}) {
    const auto matrices = torch::randn({3, rows, columns}) * torch::tensor({1e-3, 1.0, 1e3}).view({3, 1, 1});
    const auto found = orthogonalise(matrices, 5, torch::kFloat);
    for (int i = 0; i < 3; ++i) {
      const auto values = singular_values_between(matrices[i], found[i]);
      const auto off_diagonal = values - torch::diag(values.diagonal());
      EXPECT_LT(off_diagonal.abs().max().item<double>(), 1e-3) << rows << " x " << columns;
      // The iteration lifts singular values above about 1/200 of the norm; a random square matrix has smaller ones.
      EXPECT_GT(values.diagonal().median().item<double>(), 0.65);
      EXPECT_LT(values.diagonal().max().item<double>(), 1.3);
    }
  }
  EXPECT_EQ(orthogonalise(torch::zeros({1, 4, 4}), 5, torch::kFloat).abs().max().item<double>(), 0);
}

TEST(Orthogonalise, ComesNearTheSameInBfloat16) {
  torch::manual_seed(6);
  for (const auto& [rows, columns] : {std::pair{96, 160}, {160, 96}, {16, 40}}) {
    const auto matrices = torch::randn({2, rows, columns});
    const auto exact = orthogonalise(matrices, 5, torch::kFloat), found = orthogonalise(matrices, 5, torch::kBFloat16);
    const double error = ((found - exact).norm() / exact.norm()).item<double>();
    EXPECT_LT(error, 0.05) << rows << " x " << columns;
  }
}

TEST(Muon, StepsAlongEachBlockByItself) {
  torch::manual_seed(4);
  const auto start = torch::randn({10, 6});
  auto weight = start.clone().requires_grad_(true);
  const MuonOptions options{.momentum = 0.9, .weight_decay = 0.5, .nesterov = true};
  Muon rule({{{"weight", weight}, {{2, 2}, {1, 6}}}}, options, torch::kFloat);
  auto expected = start.clone(), momentum = torch::zeros({10, 6});
  for (int64_t step = 1; step <= 2; ++step) {
    const auto gradient = torch::randn({10, 6});
    weight.mutable_grad() = gradient.clone();
    const torch::NoGradGuard no_gradients;
    rule.update(0.1, /*divisor=*/2, step);
    momentum = 0.9 * momentum + gradient / 2;
    const auto direction = gradient / 2 + 0.9 * momentum;
    expected = expected * (1 - 0.1 * 0.5);
    for (const auto& [row, rows] : {std::pair{0, 2}, {2, 2}, {4, 6}}) {
      const auto block = orthogonalise(direction.narrow(0, row, rows).unsqueeze(0), 5, torch::kFloat)[0];
      expected.narrow(0, row, rows).sub_(block, 0.1 * 0.2 * std::sqrt(6.0));
    }
    EXPECT_TRUE(torch::allclose(weight, expected, 1e-4, 1e-5)) << step;
  }
}

TEST(Muon, MovesRowsAsFarAsAdamWOrAsTheSpectralNormSays) {
  torch::manual_seed(5);
  for (const auto& [scale, expected] : {std::pair{"adamw", 0.2 * std::sqrt(32.0)}, {"spectral", 2.0}}) {
    auto weight = torch::zeros({32, 8}).requires_grad_(true);
    Muon rule({{{"weight", weight}, {{1, 32}}}}, {.scale = scale}, torch::kFloat);
    weight.mutable_grad() = torch::randn({32, 8});
    const torch::NoGradGuard no_gradients;
    rule.update(1.0, 1, 1);
    // All singular values are near 1, so their root mean square times the scale is near the scale.
    const double found = weight.norm().item<double>() / std::sqrt(8.0);
    EXPECT_NEAR(found, expected, 0.25 * expected) << scale;
  }
}

ModelConfig small_model() {
  ModelConfig config;
  config.vocab_size = 11;
  config.d_model = 16;
  config.context = 8;
  config.schedule = "2x1,4x1";
  config.kv_schedule = "1x1,2x1";
  config.ffn_width = 24;
  expand_shorthand(config);
  complete(config);
  return config;
}

/// The weights after one step with `options`.
std::map<std::string, torch::Tensor> weights_after_a_step(const OptimizerOptions& options) {
  Decoder decoder(small_model());
  decoder->initialise(1);
  auto optimizer = make_optimizer(decoder->weights(), options, torch::kFloat);
  torch::manual_seed(6);
  const auto tokens = torch::randint(0, 11, {4, 8}, torch::kLong);
  decoder->head.loss(decoder(tokens, ForwardContext{}), tokens.roll(-1, 1)).backward();
  optimizer.step(0.01, optimizer.gradient_norm());
  std::map<std::string, torch::Tensor> weights;
  for (const auto& entry : decoder->weights()) {
    EXPECT_FALSE(entry.weight.tensor().grad().defined());
    weights[entry.name] = entry.weight.tensor().detach();
  }
  return weights;
}

TEST(MakeOptimizer, GivesMuonTheMatricesOfLayersAndAdamWTheRest) {
  const auto adamw = weights_after_a_step({.kind = "adamw"}), muon = weights_after_a_step({.kind = "muon"});
  for (const auto& [name, weight] : adamw) {
    const bool of_muon = name.starts_with("blocks_") && weight.dim() == 2;
    EXPECT_EQ(torch::allclose(weight, muon.at(name), 1e-6, 1e-7), !of_muon) << name;
  }
}

TEST(MakeOptimizer, TreatsQueriesKeysAndValuesApartAndHeadsIfAsked) {
  const auto whole = weights_after_a_step({.kind = "muon"}),
             heads = weights_after_a_step({.kind = "muon", .muon = {.per_head = true}});
  const auto& a = whole.at("blocks_0.attention.qkv.weight");
  const auto& b = heads.at("blocks_0.attention.qkv.weight");
  // Layer 0 has two query heads of width 8, one key head and one value head. Keys and values are one matrix either way.
  EXPECT_FALSE(torch::allclose(a.narrow(0, 0, 16), b.narrow(0, 0, 16), 1e-6, 1e-7));
  EXPECT_TRUE(torch::allclose(a.narrow(0, 16, 16), b.narrow(0, 16, 16), 1e-6, 1e-7));
  EXPECT_TRUE(torch::allclose(whole.at("blocks_0.mlp.down.weight"), heads.at("blocks_0.mlp.down.weight")));
}

TEST(MakeOptimizer, RemembersEveryWeightUnderItsName) {
  for (const char* kind : {"adamw", "muon", "sgd"}) {
    Decoder decoder(small_model());
    std::set<std::string> names;
    const auto weights = decoder->weights();
    for (const auto& tensor : make_optimizer(weights, {.kind = kind}, torch::kFloat).state()) {
      EXPECT_TRUE(names.insert(tensor.name).second) << tensor.name;
      const auto weight = tensor.name.substr(0, tensor.name.rfind('.'));
      EXPECT_EQ(tensor.tensor.sizes(), find_weight(weights, weight).tensor().sizes()) << tensor.name;
    }
    EXPECT_GE(names.size(), weights.size()) << kind;
  }
}

TEST(Optimizer, MakesCopiesOfTheWeightsStale) {
  Linear linear(4, 4);
  torch::NoGradGuard no_gradients;
  linear.weight.tensor().normal_();
  const auto x = torch::randn({2, 4}).to(torch::kBFloat16);
  const auto before = linear(x);
  auto optimizer = optimizer_of<AdamW>({{"weight", linear.weight.tensor()}}, AdamWOptions(), 1.0);
  linear.weight.tensor().mutable_grad() = torch::ones({4, 4});
  optimizer.step(0.5, optimizer.gradient_norm());
  EXPECT_GT((linear(x) - before).abs().max().item<float>(), 0.1);
  EXPECT_TRUE(torch::equal(linear.weight.cast(torch::kBFloat16), linear.weight.tensor().to(torch::kBFloat16)));
}

TEST(OptimizerOptions, ThatNoUpdateCanUseAreRefused) {
  EXPECT_REFUSED(check(OptimizerOptions{.kind = "adam"}), "did you mean adamw?");
  EXPECT_REFUSED(check(OptimizerOptions{.clip = -1}), "train.clip: expected at least 0");
  EXPECT_REFUSED(check(AdamWOptions{.beta1 = 1.0}), "[0, 1)");
  EXPECT_REFUSED(check(AdamWOptions{.epsilon = 0}), "epsilon above 0");
  EXPECT_REFUSED(check(MuonOptions{.momentum = 1}), "[0, 1)");
  EXPECT_REFUSED(check(MuonOptions{.iterations = 0}), "1-100");
  EXPECT_REFUSED(check(MuonOptions{.scale = "rms"}), "adamw or spectral");
  EXPECT_REFUSED(check(SgdOptions{.weight_decay = -0.1}), "at least 0");
  EXPECT_REFUSED(check(SgdOptions{.momentum = 0, .nesterov = true}), "momentum above 0");
}

}  // namespace
}  // namespace prism
