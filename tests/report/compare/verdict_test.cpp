#include "prism/report/compare/verdict.h"

#include <gtest/gtest.h>

#include "prism/report/compare/cost.h"
#include "prism/report/page/figures.h"
#include "prism/report/tables/summary.h"
#include "tests/core/message_of.h"
#include "tests/report/made_runs.h"

namespace prism {
namespace {

TEST(FinalLosses, AreThoseOfTheGroupsThatWereEvaluatedAfterTheMostTokens) {
  auto runs = runs_ending_at("a", {4.0, 4.2});
  runs.push_back(make_run("b", 1, {{1000, 1.0}}));
  runs.push_back(make_run("c", 1, {}));
  runs.push_back(make_run("d", 1, {{3000, 5.0}}));
  const auto finals = final_losses(compare_runs(runs));
  EXPECT_EQ(finals.trained, 3000);
  ASSERT_EQ(finals.groups.size(), 2U);
  EXPECT_EQ(finals.groups[0].group, 0U);
  EXPECT_DOUBLE_EQ(finals.groups[0].loss.mean, 4.1);
  EXPECT_EQ(finals.groups[1].group, 3U);
}

TEST(FindVerdict, IsShownWhereTheIntervalAgainstTheBaselineLiesBelowZero) {
  const auto verdict = find_verdict(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}}));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 1U);
  EXPECT_EQ(verdict->rival, 0U);
  EXPECT_TRUE(verdict->of_all);
  EXPECT_TRUE(verdict->is_shown());
}

TEST(FindVerdict, TakesTheHighestWhereMoreIsBetter) {
  auto runs = runs_ending_at("base", {0.4, 0.45, 0.5});
  for (const auto& run : runs_ending_at("high", {0.5, 0.56, 0.61})) runs.push_back(run);
  for (const auto& run : runs_ending_at("low", {0.3, 0.36, 0.41})) runs.push_back(run);
  for (auto& run : runs) run.metric = {"accuracy", false};
  const auto comparison = compare_runs(runs);
  const auto verdict = find_verdict(comparison);
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 1U);
  EXPECT_TRUE(verdict->is_shown());
  EXPECT_NE(headline(comparison).find("high has the highest validation accuracy after"), std::string::npos);
  const auto table = results_table(comparison);
  EXPECT_EQ(table.columns[2].header, "val accuracy");
  EXPECT_EQ(table.columns[3].header, "Δ val accuracy") << "no perplexity";
  EXPECT_EQ(valid_plot(comparison).y.label, "validation accuracy");
  for (auto& run : runs) run.valid.insert(run.valid.begin(), {1, 0.01, 0});
  EXPECT_LE(valid_plot(compare_runs(runs)).y.low, 0.01) << "an accuracy begins low";
  EXPECT_DOUBLE_EQ(first_reach({{100, 0.2, 1}, {200, 0.4, 2}}, 0.3, comparison.metric)->trained, 150);
  runs.back().metric = {};
  EXPECT_NE(message_of([&] { compare_runs(runs); }).find("the same validation metric; found accuracy in"),
            std::string::npos);
}

TEST(FindVerdict, IsNotShownWhereTheIntervalIncludesZero) {
  const auto verdict = find_verdict(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.3, 4.7}}}));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 1U);
  EXPECT_FALSE(verdict->is_shown());
}

TEST(FindVerdict, MeasuresTheBaselineAgainstTheRunnerUp) {
  const auto verdict =
      find_verdict(compare_groups({{"base", {3.0, 3.0}}, {"far", {6.0, 6.0}}, {"near", {3.11, 3.10}}}));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 0U);
  EXPECT_EQ(verdict->rival, 2U);
  EXPECT_NEAR(verdict->difference->difference.mean, -0.105, 1e-12);
  EXPECT_TRUE(verdict->is_shown());
}

TEST(FindVerdict, ShowsNothingWithoutPairs) {
  auto runs = runs_ending_at("base", {4.0, 4.001});
  for (prism::Run run : runs_ending_at("low", {3.0, 3.001})) {
    run.seed = *run.seed + 10;
    runs.push_back(run);
  }
  const auto verdict = find_verdict(compare_runs(runs));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 1U);
  EXPECT_FALSE(verdict->is_shown());
  EXPECT_FALSE(find_verdict(compare_groups({{"base", {4.0}}, {"low", {3.0}}}))->is_shown()) << "a single pair";
}

TEST(FindVerdict, IsOfTheSeedsThatAreShared) {
  // The lowest mean comes from a seed that the baseline does not have. On the shared seeds the baseline is lower.
  const auto verdict = find_verdict(compare_groups({{"base", {4.0, 4.0}}, {"low", {4.1, 4.1001, 1.0}}}));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 0U);
  EXPECT_TRUE(verdict->is_shown());
}

TEST(FindVerdict, LeavesOutGroupsOfFewerSeeds) {
  const auto verdict =
      find_verdict(compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}, {"once", {3.0}}}));
  ASSERT_TRUE(verdict.has_value());
  EXPECT_EQ(verdict->best, 1U);
  EXPECT_EQ(verdict->of_seeds, 3);
  EXPECT_TRUE(verdict->is_shown());
}

TEST(FindVerdict, IsAbsentForOneGroupAndForDifferentLengths) {
  EXPECT_FALSE(find_verdict(compare_groups({{"base", {4.0, 4.1}}})).has_value());
  auto runs = runs_ending_at("base", {4.0});
  runs.push_back(make_run("half", 1, {{1000, 1.0}}));
  EXPECT_FALSE(find_verdict(compare_runs(runs)).has_value());
}

}  // namespace
}  // namespace prism
