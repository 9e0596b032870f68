// The plain loop that chooses heads against operations on tensors.
#include "prism/attention/budget/choose_heads.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace prism {
namespace {

TEST(LargestHeads, AreTheLowerOnesWhereValuesAreEqual) {
  const auto kept = [](double share, const std::vector<double>& values) {
    const auto kept_BH = largest_heads(torch::tensor({share}), torch::tensor(values).unsqueeze(0));
    std::vector<int64_t> heads;
    for (int64_t i = 0; i < kept_BH.size(1); ++i)
      if (kept_BH[0][i].item<bool>()) heads.push_back(i);
    return heads;
  };
  using Heads = std::vector<int64_t>;
  EXPECT_EQ(kept(0.5, {0.25, 0.25, 0.25, 0.25}), (Heads{0, 1}));
  EXPECT_EQ(kept(0.5, {0.1, 0.3, 0.3, 0.3}), (Heads{1, 2}));
  EXPECT_EQ(kept(0.7, {0.1, 0.2, 0.3, 0.4}), (Heads{2, 3}));
  EXPECT_EQ(kept(0.01, {0.1, 0.2, 0.3, 0.4}), (Heads{3})) << "at least one";
  EXPECT_EQ(kept(1, {0.1, 0.2, 0.3, 0.4}), (Heads{0, 1, 2, 3}));
  EXPECT_EQ(kept(0.5, {0.1, NAN, 0.3, NAN}), (Heads{1, 3}));
  for (int64_t heads = 1; heads <= 128; ++heads)
    for (int64_t k = 1; k <= heads; ++k) {
      const auto share = torch::tensor({static_cast<float>(k) / static_cast<float>(heads)});
      EXPECT_EQ(largest_heads(share, torch::rand({1, heads})).sum().item<int64_t>(), k) << heads;
    }
}

ChosenHeads choose(const BudgetScores& scores, double tau, const BudgetChange& change = {}) {
  return choose_heads(scores, tau, change, torch::kCPU);
}

TEST(ChooseHeads, AgreesWithOperationsOnTensors) {
  torch::manual_seed(5);
  for (const auto type : {torch::kFloat, torch::kDouble})
    for (const int64_t heads : {1, 2, 7, 16})
      for (const double tau : {0.01, 1.0}) {
        SCOPED_TRACE(testing::Message() << c10::toString(type) << ", " << heads << " heads, tau " << tau);
        const auto share_B1 = 3 * torch::randn({60, 1}, type), scores_BH = torch::randn({60, heads}, type);
        const auto [decision, weight_BH, keeps_all] = choose({60, heads, share_B1, 1, scores_BH, {}}, tau);
        const double rounding = type == torch::kFloat ? 0x1p-23 : 1e-12;
        const auto s_B = share_B1.squeeze(1).to(torch::kDouble).sigmoid();
        const auto p_BH = (scores_BH.to(torch::kDouble) / tau).softmax(1);
        EXPECT_EQ(weight_BH.scalar_type(), type);
        EXPECT_TRUE(torch::allclose(decision.share_B.to(torch::kDouble), s_B, rounding, 0));
        EXPECT_TRUE(torch::allclose(decision.probability_BH.to(torch::kDouble), p_BH, rounding, 1e-37));
        EXPECT_TRUE(
            torch::allclose(weight_BH.to(torch::kDouble), heads * s_B.unsqueeze(1) * p_BH, 4 * rounding, 1e-36));
        EXPECT_TRUE(torch::equal(decision.kept_BH, largest_heads(decision.share_B, decision.probability_BH)));
        EXPECT_EQ(keeps_all, decision.kept_BH.all().item<bool>());
      }
}

TEST(ChooseHeads, TakesTheLowerHeadWhereProbabilitiesAreEqualOnceRounded) {
  const auto scores_BH = torch::tensor({{0.0f, 1e-8f, -1e-8f, -1.0f}});
  const auto chosen = choose({1, 4, {}, 0.25, scores_BH, {}}, 1);
  EXPECT_TRUE(torch::equal(chosen.decision.kept_BH, torch::tensor({{true, false, false, false}})));
  EXPECT_FALSE(chosen.keeps_all);
}

TEST(ChooseHeads, KeepsOneHeadOfARunThatDiverged) {
  const auto chosen = choose({1, 3, torch::full({1, 1}, NAN), 1, torch::full({1, 3}, NAN), {}}, 1);
  EXPECT_EQ(chosen.decision.kept_BH.sum().item<int64_t>(), 1);
  EXPECT_TRUE(chosen.weight_BH.isnan().all().item<bool>());
}

TEST(ChooseHeads, TakesNoTexts) {
  const auto chosen = choose({0, 3, torch::empty({0, 1}), 1, torch::empty({0, 3}), {}}, 1);
  EXPECT_EQ(chosen.weight_BH.sizes(), (std::vector<int64_t>{0, 3}));
  EXPECT_TRUE(chosen.keeps_all);
}

}  // namespace
}  // namespace prism
