#include "prism/analysis/budget_groups.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>

namespace prism {
namespace {

using Indices = std::vector<int64_t>;

TEST(ExampleGroups, DivideExamplesByClass) {
  const auto groups = groups_by_class({2, 0, 2, 0, 0}, {"a", "b", "c"});
  ASSERT_EQ(groups.size(), 2u) << "b has no examples";
  EXPECT_EQ(groups[0].name, "a");
  EXPECT_EQ(groups[0].examples, (Indices{1, 3, 4}));
  EXPECT_EQ(groups[1].name, "c");
  EXPECT_EQ(groups[1].examples, (Indices{0, 2}));
}

TEST(ExampleGroups, DivideExamplesIntoThirds) {
  const auto groups = groups_by_third("length", {"short", "middle", "long"}, {5, 1, 4, 1, 9, 2, 6});
  ASSERT_EQ(groups.size(), 3u);
  EXPECT_EQ(groups[0].examples, (Indices{1, 3}));     // 1 1
  EXPECT_EQ(groups[1].examples, (Indices{2, 5}));     // 2 4
  EXPECT_EQ(groups[2].examples, (Indices{0, 4, 6}));  // 5 6 9
  EXPECT_EQ(groups[2].by, "length");
  EXPECT_EQ(groups_by_third("length", {"short", "middle", "long"}, {3}).size(), 1u);
}

TEST(ExampleGroups, AreAllExamplesThenThoseOfEachTrait) {
  const auto described = [](const ExampleTraits& traits) {
    std::vector<std::string> names;
    for (const auto& group : groups_of(traits)) names.push_back(group.by + " " + group.name);
    return names;
  };
  ExampleTraits traits{.labels = {1, 0, 1}, .classes = {"a", "b"}, .lengths = {7, 5, 6}, .losses = {}};
  const std::vector<std::string> plain = {"all all",      "class a",       "class b",
                                          "length short", "length middle", "length long"};
  EXPECT_EQ(described(traits), plain);
  traits.losses = {0.5, 0.1, 2};
  auto all = plain;
  all.insert(all.end(), {"difficulty easy", "difficulty middle", "difficulty hard"});
  EXPECT_EQ(described(traits), all);
  EXPECT_EQ(groups_of(traits).front().examples, (Indices{0, 1, 2}));
  EXPECT_EQ(groups_of(traits).back().examples, Indices{2});
}

TEST(KeptHeads, AreTheNumbersOfTheHeads) {
  EXPECT_EQ(kept_heads(torch::tensor({true, false, true})), (Indices{0, 2}));
  EXPECT_EQ(kept_heads(torch::tensor({false, false})), Indices{});
}

TEST(BudgetGroups, SummariseEachLayerWithABudget) {
  std::vector<BudgetDecision> budgets(2);  // the first layer has none
  budgets[1] = {torch::tensor({0.2, 0.6, 1.0}), torch::tensor({{0.5, 0.5}, {1.0, 0.0}, {0.25, 0.75}}),
                torch::tensor({{true, false}, {true, false}, {true, true}})};
  const auto layers = summarise_budgets(budgets, {"class", "c", {1, 2}});
  ASSERT_EQ(layers.size(), 1u);
  const auto& found = layers.front();
  EXPECT_EQ(found.layer, 1);
  EXPECT_EQ(found.heads, 2);
  EXPECT_EQ(found.examples, 2);
  EXPECT_NEAR(found.share, 0.8, 1e-7);
  EXPECT_NEAR(found.share_sd, 0.4 / std::sqrt(2.0), 1e-7);
  EXPECT_DOUBLE_EQ(found.kept_share, 0.75);
  EXPECT_DOUBLE_EQ(found.kept_probability, 1) << "1 of one head, and both heads";
  EXPECT_NEAR(found.share_quartiles[0], 0.7, 1e-7);
  EXPECT_NEAR(found.share_quartiles[1], 0.8, 1e-7);
  EXPECT_EQ(found.head_kept, (std::vector<double>{1, 0.5}));
  EXPECT_EQ(found.head_probability, (std::vector<double>{0.625, 0.375}));
  const double entropy = -(0.25 * std::log(0.25) + 0.75 * std::log(0.75));
  EXPECT_NEAR(found.entropy, entropy / 2, 1e-12) << "0 where one head has all of p";
}

}  // namespace
}  // namespace prism
