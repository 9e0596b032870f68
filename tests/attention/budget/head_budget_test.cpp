// Head budgets against equations 6 to 25 of arXiv 2604.22583, computed number by number.
#include "prism/attention/budget/head_budget.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <memory>
#include <vector>

#include "prism/attention/attention.h"
#include "prism/attention/budget/choose_heads.h"
#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/kernels/gradient_check.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

constexpr int64_t kWidth = 6, kHeads = 5, kLayers = 3;

LayerConfig layer_with(const std::string& kind, double share = 1) {
  LayerConfig layer;
  layer.heads = layer.kv_heads = kHeads;
  layer.head_dim = 2;
  layer.budget.kind = kind;
  layer.budget.share = share;
  return layer;
}

/// A budget of float64 with random weights, among three layers that have one.
HeadBudget drawn_budget(const LayerConfig& layer) {
  HeadBudget budget(kWidth, layer, /*index=*/1, kLayers);
  const auto weights = weights_of(budget);
  convert_weights(weights, torch::kDouble);
  torch::NoGradGuard no_gradients;
  torch::manual_seed(3);
  for (const auto& entry : weights) entry.weight.tensor().normal_(0, 0.7);
  return budget;
}

torch::Tensor texts(int64_t batch = 3, int64_t tokens = 4) {
  torch::manual_seed(4);
  return torch::randn({batch, tokens, kWidth}, torch::kDouble);
}

/// Values of a pass in training.
struct Trained {
  HeadWeights heads;
  torch::Tensor loss;
  BudgetDecision decision;
};

Trained train_at(const HeadBudget& budget, const torch::Tensor& x_BTD, double progress,
                 const BudgetSchedule& schedule = {}, BudgetNoise noise = {1, 7, 0}) {
  Auxiliary auxiliary(progress);
  Budgets budgets(schedule, progress, noise);
  ForwardContext context;
  context.auxiliary = &auxiliary;
  context.budgets = &budgets;
  auto heads = budget(x_BTD, context, 0);
  return {heads, auxiliary.loss(), budgets.decisions().at(1)};
}

/// Compares the gradient of a float64 weight with finite differences. @return  its largest magnitude.
double expect_weight_gradient(const Weight& weight, const std::function<torch::Tensor()>& scalar) {
  const auto& values = weight.tensor();
  values.mutable_grad().reset();
  scalar().backward();
  const auto gradient = values.grad().clone().flatten();
  const torch::NoGradGuard no_gradients;
  auto flat = values.view({-1});
  for (int64_t i = 0; i < flat.numel(); ++i) {
    const double kept = flat[i].item<double>(), step = 1e-5;
    flat[i] = kept + step;
    const double above = scalar().item<double>();
    flat[i] = kept - step;
    const double below = scalar().item<double>();
    flat[i] = kept;
    EXPECT_NEAR(gradient[i].item<double>(), (above - below) / (2 * step), 1e-6) << i;
  }
  return gradient.abs().max().item<double>();
}

TEST(BudgetSchedule, HasTheValuesOfThePaper) {
  const BudgetSchedule schedule;
  EXPECT_EQ(schedule.tau(0), 2);
  EXPECT_NEAR(schedule.tau(1), 0.1128, 5e-5);
  EXPECT_EQ(schedule.sigma(0), 0.5);
  EXPECT_EQ(schedule.sigma(1), 0);
  EXPECT_EQ(schedule.beta(0), -0.05);
  EXPECT_EQ(schedule.beta(0.5), 0);
  EXPECT_EQ(schedule.beta(1), 0.05);
}

TEST(HeadBudget, IsThatOfTheEquations) {
  const auto budget = drawn_budget(layer_with("learned"));
  const auto x_BTD = texts();
  const double progress = 0.25;
  const BudgetSchedule schedule{.s_min = 0.45, .s_max = 0.5};
  const auto found = train_at(budget, x_BTD, progress, schedule);
  const auto noise = Budgets(schedule, progress, {1, 7, 0}).normal(1, 3, kHeads);
  const auto value = [](const Linear& layer, int64_t out, const std::vector<double>& in) {
    double sum = layer.bias.tensor()[out].item<double>();
    for (size_t i = 0; i < in.size(); ++i)
      sum += layer.weight.tensor()[out][static_cast<int64_t>(i)].item<double>() * in[i];
    return sum;
  };
  double loss = 0;
  for (int64_t b = 0; b < 3; ++b) {
    std::vector<double> h(kWidth), inner(kWidth), p(kHeads);
    for (int64_t i = 0; i < kWidth; ++i)
      h[static_cast<size_t>(i)] = x_BTD[b].select(1, i).mean().item<double>();  // (6)
    for (int64_t i = 0; i < kWidth; ++i) inner[static_cast<size_t>(i)] = std::max(0.0, value(budget.hidden, i, h));
    const double s = 1 / (1 + std::exp(-value(budget.share, 0, inner)));  // (7)
    const double tau = 0.1 + (2.0 - 0.1) * std::exp(-5 * progress);       // (10)
    double total = 0;
    for (int64_t i = 0; i < kHeads; ++i) {
      const double z = value(budget.scores, i, h) + noise[b][i].item<double>() * 0.5 * (1 - progress);  // (8)
      total += p[static_cast<size_t>(i)] = std::exp(z / tau);
    }
    double sum_p_log_p = 0;
    for (auto& probability : p) probability /= total, sum_p_log_p += probability * std::log(probability);  // (9)
    for (int64_t i = 0; i < kHeads; ++i) {
      EXPECT_NEAR(found.heads.weight_BH[b][i].item<double>(), s * kHeads * p[static_cast<size_t>(i)], 1e-12);  // (11)
      EXPECT_NEAR(found.decision.probability_BH[b][i].item<double>(), p[static_cast<size_t>(i)], 1e-12);
    }
    EXPECT_NEAR(found.decision.share_B[b].item<double>(), s, 1e-12);
    const auto kept = static_cast<int64_t>(std::max(1.0, std::floor(s * kHeads)));  // (15)
    EXPECT_EQ(found.decision.kept_BH[b].sum().item<int64_t>(), kept);
    const double v = std::max(0.0, 0.45 - s) + std::max(0.0, s - 0.5);  // (20)
    const double alpha = std::min(0.05, 0.001 + v);                     // (22)
    loss += alpha * v * v - 0.05 * (2 * progress - 1) * sum_p_log_p;    // (21), (24), (25) with the text's sign
    EXPECT_GT(v, 0) << "the penalty takes part";
  }
  EXPECT_NEAR(found.loss.item<double>(), loss / 3 / kLayers, 1e-12);
  EXPECT_FALSE(found.heads.kept_BH.defined()) << "all heads are computed in training";
}

TEST(HeadBudget, RewardsEntropyEarlyInTheTextAndLateAsPrinted) {
  const auto budget = drawn_budget(layer_with("fixed", 0.5));
  const auto loss = [&](const std::string& sign, double progress) {
    return train_at(budget, texts(), progress, {.sigma_max = 0, .entropy_sign = sign}).loss.item<double>();
  };
  EXPECT_LT(loss("text", 0), 0) << "entropy lowers the loss";
  EXPECT_GT(loss("text", 1), 0);
  EXPECT_EQ(loss("printed", 0), -loss("text", 0));
  EXPECT_EQ(loss("text", 0.5), 0);
}

TEST(HeadBudget, HasTheGradientsOfFiniteDifferences) {
  for (const std::string kind : {"learned", "fixed"})
    // Without penalty, below the bound with a growing alpha and with the largest one, and above the bound.
    for (const auto& [s_min, s_max] : {std::pair{0.1, 0.99}, {0.45, 0.99}, {0.99, 0.99}, {0.1, 0.3}}) {
      auto layer = layer_with(kind, 0.5);
      const auto budget = drawn_budget(layer);
      const double lowest = s_min, highest = s_max;
      const auto scalar = [&](const torch::Tensor& x_BTD) {
        const auto found = train_at(budget, x_BTD, 0.75, {.s_min = lowest, .s_max = highest});
        torch::manual_seed(9);
        return (found.heads.weight_BH * torch::randn({3, kHeads}, torch::kDouble)).sum() + 100 * found.loss;
      };
      expect_gradient(scalar, texts());
      for (const auto& entry : weights_of(budget))
        expect_weight_gradient(entry.weight, [&] { return scalar(texts()); });
    }
}

TEST(HeadBudget, HasGradientsThroughTheWeightsOfHeads) {
  // The output of a whole attention part: w multiplies the heads' outputs, and is not detached.
  for (const bool train_topk : {false, true})
    for (const bool causal : {false, true}) {
      auto layer = layer_with("learned");
      layer.rotary.kind = "none";
      layer.budget.train_topk = train_topk;
      Attention attention({.d_model = kWidth, .is_causal = causal, .budgets = 1}, layer, 0,
                          std::make_shared<RotaryCache>());
      const auto weights = weights_of(attention);
      convert_weights(weights, torch::kDouble);
      {
        const torch::NoGradGuard no_gradients;
        torch::manual_seed(8);
        for (const auto& entry : weights) entry.weight.tensor().normal_(0, 0.5);
      }
      // No losses of the budget's own: beta is 0 at half of the training, and the bounds include every s.
      const BudgetSchedule schedule{.s_min = 0, .s_max = 1};
      const auto scalar = [&](const torch::Tensor& x_BTD) {
        Auxiliary auxiliary(0.5);
        Budgets budgets(schedule, 0.5, {1, 7, 0});
        ForwardContext context;
        context.auxiliary = &auxiliary;
        context.budgets = &budgets;
        if (causal) context.prompts_B = torch::tensor({2, 3, 4}, torch::kInt);
        context.backend = AttentionBackend::reference;
        const auto out_BTD = attention(x_BTD, context);
        return (out_BTD * at::arange(out_BTD.numel(), torch::kDouble).view_as(out_BTD).sin()).sum();
      };
      expect_gradient(scalar, texts());
      for (const auto* network : {&attention.budget.hidden, &attention.budget.share, &attention.budget.scores})
        EXPECT_GT(expect_weight_gradient(network->weight, [&] { return scalar(texts()); }), 1e-4);
    }
}

TEST(HeadBudget, HasFiniteGradientsWhereAProbabilityIsZero) {
  const auto budget = drawn_budget(layer_with("learned"));
  convert_weights(weights_of(budget), torch::kFloat);
  {
    torch::NoGradGuard no_gradients;
    budget.scores.bias.tensor()[2] = 1000;
  }
  const auto found = train_at(budget, texts().to(torch::kFloat), 1);
  EXPECT_EQ(found.decision.probability_BH.min().item<float>(), 0);
  (found.loss + found.heads.weight_BH.sum()).backward();
  for (const auto& entry : weights_of(budget))
    EXPECT_TRUE(torch::isfinite(entry.weight.tensor().grad()).all().item<bool>());
}

TEST(HeadBudget, KeepsTheLargestHeadsWithoutNoiseOutsideTraining) {
  const auto budget = drawn_budget(layer_with("learned"));
  const auto heads = budget(texts(), {}, 0.5);
  const auto last = train_at(budget, texts(), 1, {.tau_max = 0.5, .tau_min = 0.5});
  EXPECT_TRUE(torch::allclose(heads.weight_BH, last.heads.weight_BH, 1e-12, 1e-12)) << "w is not normalised again";
  EXPECT_TRUE(torch::equal(heads.kept_BH, last.decision.kept_BH));
  EXPECT_TRUE(torch::equal(heads.kept_BH, largest_heads(last.decision.share_B, last.decision.probability_BH)));
  const auto all = drawn_budget(layer_with("fixed", 1))(texts(), {}, 0.5);
  EXPECT_FALSE(all.kept_BH.defined()) << "all heads";
}

TEST(HeadBudget, TrainsTheKeptHeadsOnlyIfAsked) {
  auto layer = layer_with("fixed", 0.5);
  layer.budget.train_topk = true;
  const auto only = train_at(drawn_budget(layer), texts(), 0.5),
             all = train_at(drawn_budget(layer_with("fixed", 0.5)), texts(), 0.5);
  EXPECT_TRUE(torch::equal(only.heads.weight_BH, all.heads.weight_BH * all.decision.kept_BH));
  EXPECT_EQ(only.decision.kept_BH.sum().item<int64_t>(), 3 * 2);
}

TEST(HeadBudget, ReadsTheTokensOfEachText) {
  auto layer = layer_with("learned");
  auto x_BTD = texts();
  ForwardContext context;
  context.lengths_B = torch::tensor({4, 2, 1}, torch::kInt);
  const auto tokens = drawn_budget(layer)(x_BTD, context, 0.5).weight_BH;
  const auto alone = drawn_budget(layer)(x_BTD.narrow(0, 1, 1).narrow(1, 0, 2), {}, 0.5).weight_BH;
  EXPECT_TRUE(torch::allclose(tokens[1], alone[0], 1e-12, 1e-12));
  layer.budget.summary = "padded";
  const auto padded = drawn_budget(layer)(x_BTD, context, 0.5).weight_BH;
  EXPECT_TRUE(torch::equal(padded, drawn_budget(layer)(x_BTD, {}, 0.5).weight_BH)) << "equation 6 as printed";
  EXPECT_FALSE(torch::allclose(padded[1], tokens[1]));
}

TEST(HeadBudget, DrawsRandomHeads) {
  const auto budget = drawn_budget(layer_with("random", 0.5));
  EXPECT_TRUE(weights_of(budget).empty());
  const auto x_BTD = texts(200, 1);
  const auto found = train_at(budget, x_BTD, 0.5);
  EXPECT_TRUE(torch::equal(found.decision.kept_BH.sum(1), torch::full({200}, 2, torch::kLong)));
  EXPECT_TRUE(torch::allclose(found.heads.weight_BH, 0.5 * found.decision.kept_BH.to(torch::kFloat)));
  EXPECT_FALSE(found.loss.defined());
  // Each head is kept in 40% of 200 draws, with a deviation of 3.5%.
  const auto shares_H = found.decision.kept_BH.to(torch::kDouble).mean(0);
  EXPECT_LT((shares_H - 0.4).abs().max().item<double>(), 0.14);
  const auto heads = budget(x_BTD, {}, 0.5);
  EXPECT_TRUE(torch::equal(heads.kept_BH, budget(x_BTD, {}, 0.5).kept_BH)) << "the same heads each time";
  EXPECT_FALSE(torch::equal(heads.kept_BH[0], heads.kept_BH[1]) && torch::equal(heads.kept_BH[1], heads.kept_BH[2]) &&
               torch::equal(heads.kept_BH[2], heads.kept_BH[3]));
}

TEST(HeadBudget, DecidesTheSameWithGradientsAsWithout) {
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const char* kind : {"learned", "fixed", "random"})
      for (const double tau : {0.02, 0.5}) {
        SCOPED_TRACE(testing::Message() << c10::toString(type) << ", " << kind << ", tau " << tau);
        const auto budget = drawn_budget(layer_with(kind, kind == std::string("learned") ? 1 : 0.5));
        convert_weights(weights_of(budget), type);
        const auto x_BTD = (3 * texts(40, 2)).to(type);
        const auto decide = [&] {
          Budgets budgets(tau, {.seed = 6});
          ForwardContext context;
          context.budgets = &budgets;
          const auto heads = budget(x_BTD, context, 0);
          return std::pair(heads, budgets.decisions().at(1));
        };
        const auto [differentiable, expected] = decide();
        const torch::NoGradGuard no_gradients;
        const auto [found, decision] = decide();
        const double bound = type == torch::kFloat ? 1e-4 : 1e-12;  // scores are divided by tau
        EXPECT_TRUE(torch::allclose(decision.share_B, expected.share_B, bound));
        EXPECT_TRUE(torch::allclose(decision.probability_BH, expected.probability_BH, bound, 1e-15));
        EXPECT_TRUE(torch::equal(decision.kept_BH, expected.kept_BH));
        EXPECT_EQ(found.weight_BH.scalar_type(), differentiable.weight_BH.scalar_type());
        EXPECT_TRUE(torch::allclose(found.weight_BH, differentiable.weight_BH, bound, 1e-15));
        EXPECT_TRUE(torch::equal(found.kept_BH, differentiable.kept_BH));
      }
}

TEST(HeadBudget, IsChangedForMeasurements) {
  const torch::NoGradGuard no_gradients;
  const auto budget = drawn_budget(layer_with("learned"));
  const auto x_BTD = texts(50, 3);
  using Heads = BudgetChange::Heads;
  const auto decide = [&](const BudgetChange& change) {
    Budgets budgets(0.5, {.seed = 3});
    budgets.change({{}, change, {}});
    ForwardContext context;
    context.budgets = &budgets;
    const auto heads = budget(x_BTD, context, 0.5);
    return std::pair(heads, budgets.decisions().back());
  };
  const auto [own, chosen] = decide({});
  EXPECT_TRUE(torch::equal(own.weight_BH, budget(x_BTD, {}, 0.5).weight_BH)) << "nothing is changed";
  const auto heads = own.weight_BH.size(1);
  const auto [all, kept_all] = decide({.heads = Heads::all});
  EXPECT_FALSE(all.kept_BH.defined());
  EXPECT_TRUE(torch::equal(all.weight_BH, own.weight_BH)) << "a head's weight stays";
  EXPECT_TRUE(torch::equal(kept_all.share_B, chosen.share_B));
  const auto [scaled, same] = decide({.gain = 0.25});
  EXPECT_TRUE(torch::allclose(scaled.weight_BH, 0.25 * static_cast<double>(heads) * chosen.probability_BH));
  EXPECT_TRUE(torch::equal(same.kept_BH, chosen.kept_BH)) << "the number of heads stays the text's own";
  const auto [drawn, random] = decide({.heads = Heads::drawn, .drawn_share = 0.4, .gain = 0.25});
  EXPECT_TRUE(torch::equal(random.kept_BH.sum(1), torch::full({50}, heads * 2 / 5, torch::kLong)));
  EXPECT_TRUE(torch::allclose(drawn.weight_BH, torch::full_like(drawn.weight_BH, 0.25))) << "p is 1 / H";
  EXPECT_FALSE(torch::equal(random.kept_BH, random.kept_BH[0].expand_as(random.kept_BH))) << "drawn for each text";
  const auto [shuffled, others] = decide({.heads = Heads::shuffled});
  const auto sorted = [](const torch::Tensor& value_BH) { return std::get<0>(value_BH.sort(1)); };
  EXPECT_TRUE(torch::equal(sorted(shuffled.weight_BH), sorted(own.weight_BH))) << "the same weights";
  EXPECT_FALSE(torch::equal(shuffled.weight_BH, own.weight_BH)) << "of other heads";
  EXPECT_TRUE(torch::equal(others.kept_BH.sum(1), chosen.kept_BH.sum(1)));
  const auto order_BH =
      Budgets(0.5, {.seed = 3}).normal(1, 50, heads).argsort(/*stable=*/true, 1, /*descending=*/false);
  EXPECT_TRUE(torch::equal(others.probability_BH, chosen.probability_BH.gather(1, order_BH)))
      << "as in earlier records";
  EXPECT_TRUE(torch::equal(others.kept_BH, largest_heads(others.share_B, others.probability_BH)));
}

TEST(Budgets, DrawNormalNumbersByPlace) {
  const Budgets budgets({}, 0, {.seed = 5, .step = 3, .first_row = 10});
  const auto all = budgets.normal(2, 20'000, 2);
  EXPECT_NEAR(all.mean().item<double>(), 0, 0.02);  // 4 deviations of 1 / sqrt(40,000)
  EXPECT_NEAR(all.std().item<double>(), 1, 0.015);
  EXPECT_NEAR((all.select(1, 0) * all.select(1, 1)).mean().item<double>(), 0, 0.03);
  EXPECT_TRUE(torch::equal(all, budgets.normal(2, 20'000, 2)));
  const Budgets later({}, 0, {.seed = 5, .step = 3, .first_row = 15});
  EXPECT_TRUE(torch::equal(later.normal(2, 10, 2), all.narrow(0, 5, 10))) << "whatever the rows of a batch";
  EXPECT_FALSE(torch::equal(budgets.normal(1, 10, 2), all.narrow(0, 0, 10)));
  EXPECT_FALSE(torch::equal(Budgets({}, 0, {5, 4, 10}).normal(2, 10, 2), all.narrow(0, 0, 10)));
  EXPECT_FALSE(torch::equal(Budgets({}, 0, {6, 3, 10}).normal(2, 10, 2), all.narrow(0, 0, 10)));
}

TEST(HeadBudget, ReadsThePromptsOfRows) {
  const auto budget = drawn_budget(layer_with("learned"));
  const auto x_BTD = texts();
  ForwardContext context;
  context.prompts_B = torch::tensor({4, 1, 3}, torch::kInt);
  Budgets prompts(0.5), alone(0.5);
  context.budgets = &prompts;
  budget(x_BTD, context, 0);
  for (int64_t b = 0; b < 3; ++b) {
    ForwardContext whole;
    whole.budgets = &alone;
    budget(x_BTD.narrow(0, b, 1).narrow(1, 0, context.prompts_B[b].item<int64_t>()), whole, 0);
    EXPECT_NEAR(prompts.decisions()[1].share_B[b].item<double>(), alone.decisions()[1].share_B[0].item<double>(),
                1e-12);
  }
}

TEST(HeadBudget, RefusesASelectorChunksAndWrongOptions) {
  const auto budget = drawn_budget(layer_with("learned"));
  Prefill prefill({}, {});
  ForwardContext context;
  context.prefill = &prefill;
  EXPECT_REFUSED(budget(texts(), context, 1), "found a selector");
  context = {};
  context.rows = {{.sequence = 0, .tokens = 4, .prompt_length = 5}};
  EXPECT_REFUSED(budget(texts(), context, 1), "expected a prompt in one piece");
  const auto refused = [](const std::function<void(BudgetConfig&)>& change) {
    BudgetConfig config;
    change(config);
    return message_of([&] { check(config, 2); });
  };
  EXPECT_CONTAINS(refused([](BudgetConfig& c) { c.kind = "some"; }), "layer 2: expected budget.kind none, learned");
  EXPECT_CONTAINS(refused([](BudgetConfig& c) { c.share = 0; }), "expected a budget.share above 0");
  EXPECT_CONTAINS(refused([](BudgetConfig& c) { c.share = 1.5; }), "found 1.5");
  EXPECT_CONTAINS(refused([](BudgetConfig& c) { c.kind = "learned", c.share = 0.5; }),
                  "expected no budget.share with budget.kind learned");
  EXPECT_CONTAINS(refused([](BudgetConfig& c) { c.summary = "mean"; }), "expected budget.summary tokens or padded");
  const auto refused_schedule = [](const BudgetSchedule& schedule) { return message_of([&] { check(schedule); }); };
  EXPECT_EQ(refused_schedule({}), "");
  EXPECT_CONTAINS(refused_schedule({.s_min = 0.9, .s_max = 0.1}), "train.budget.s_min <= train.budget.s_max");
  EXPECT_CONTAINS(refused_schedule({.tau_max = 0.01}), "train.budget.tau_min <= train.budget.tau_max");
  EXPECT_CONTAINS(refused_schedule({.tau_min = 1e-40}), "expected 1e-06 <= train.budget.tau_min");
  EXPECT_CONTAINS(refused_schedule({.tau_max = 1e38}), "train.budget.tau_max <= 1000000; found 0.1 and 1e+38");
  EXPECT_CONTAINS(refused_schedule({.beta_max = -1}), "train.budget.beta_max");
  EXPECT_CONTAINS(refused_schedule({.beta_max = 1e38}), "train.budget.beta_max: expected from 0 to 1000");
  EXPECT_CONTAINS(refused_schedule({.alpha_base = 0.1}), "train.budget.alpha_base <= train.budget.alpha_max");
  EXPECT_CONTAINS(refused_schedule({.entropy_sign = "both"}), "expected text or printed");
}

}  // namespace
}  // namespace prism
