#include "prism/report/compare/cost.h"

#include <gtest/gtest.h>

#include "tests/report/made_runs.h"

namespace prism {
namespace {

/// Groups of one run each: name, final loss, tokens/s.
Comparison rated(const std::vector<std::tuple<const char*, double, double>>& groups) {
  std::vector<Run> runs;
  for (const auto& [name, loss, rate] : groups) {
    runs.push_back(make_run(name, 1, {{1000, loss}}));
    runs.back().rate = rate;
  }
  return compare_runs(runs);
}

std::vector<std::string> front_of(const Comparison& comparison) {
  std::vector<std::string> front;
  for (const auto& point : cost_points(comparison)) {
    if (point.on_front) front.push_back(comparison.groups[point.group].label);
  }
  return front;
}

TEST(CostPoints, AreOnTheFrontWhereNoOtherIsAsLowAndAsFast) {
  // slow but lowest; fastest but highest; in between; beaten by "middle" in both.
  const auto comparison = rated({{"fast", 4.0, 900}, {"middle", 3.5, 500}, {"low", 3.0, 100}, {"beaten", 3.6, 400}});
  EXPECT_EQ(front_of(comparison), (std::vector<std::string>{"low", "middle", "fast"})) << "from slow to fast";
}

TEST(CostPoints, KeepEqualsOnTheFrontAndDropWhatIsOnlyAsGoodInOne) {
  EXPECT_EQ(front_of(rated({{"a", 3.0, 100}, {"b", 3.0, 100}})).size(), 2U);
  EXPECT_EQ(front_of(rated({{"a", 3.0, 100}, {"b", 3.0, 99}})), (std::vector<std::string>{"a"}));
  EXPECT_EQ(front_of(rated({{"a", 3.0, 100}, {"b", 3.1, 100}})), (std::vector<std::string>{"a"}));
}

TEST(CostPoints, LeaveOutShorterRunsAndUnknownRates) {
  std::vector<prism::Run> runs = {make_run("whole", 1, {{1000, 3.0}}), make_run("half", 1, {{500, 2.0}}),
                                  make_run("unrated", 1, {{1000, 2.5}})};
  runs[0].rate = runs[1].rate = 10;
  const auto points = cost_points(compare_runs(runs));
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(points[0].group, 0U);
}

TEST(CostPoints, AreOfTimedRatesAloneWhereThereAreAny) {
  std::vector<prism::Run> runs = {make_run("timed", 1, {{1000, 3.0}}), make_run("busy", 1, {{1000, 2.5}})};
  runs[0].rate = runs[1].rate = 10;
  runs[0].timing.emplace();
  const auto comparison = compare_runs(runs);
  ASSERT_EQ(cost_points(comparison).size(), 1U);
  EXPECT_EQ(cost_points(comparison)[0].group, 0U);
  EXPECT_EQ(training_rate(comparison, 1).count, 0);
}

TEST(FirstReach, LiesOnTheStraightLineBetweenEvaluations) {
  // From 5.0 to 4.0 between 1000 and 3000 tokens, 10 and 50 seconds: 4.25 at three quarters.
  const auto moment = first_reach({{1000, 5.0, 10}, {3000, 4.0, 50}}, 4.25);
  ASSERT_TRUE(moment.has_value());
  EXPECT_DOUBLE_EQ(moment->trained, 2500);
  EXPECT_DOUBLE_EQ(moment->seconds, 40);
}

TEST(FirstReach, IsTheFirstOfSeveral) {
  const auto moment = first_reach({{1, 5.0, 1}, {2, 4.0, 2}, {3, 4.5, 3}, {4, 3.0, 4}}, 4.0);
  ASSERT_TRUE(moment.has_value());
  EXPECT_DOUBLE_EQ(moment->trained, 2);
}

TEST(FirstReach, IsTheFirstEvaluationWhereTheCurveBeginsBelowAndAbsentWhereItNeverComes) {
  EXPECT_DOUBLE_EQ(first_reach({{7, 3.0, 2}, {8, 2.0, 3}}, 3.5)->trained, 7);
  EXPECT_FALSE(first_reach({{7, 3.0, 2}, {8, 2.5, 3}}, 2.4).has_value());
  EXPECT_FALSE(first_reach({}, 2.4).has_value());
}

TEST(ReachLoss, CountsTheSeedsThatReachIt) {
  // The curves fall from 5 at 1000 tokens to their last loss at 3000. Two of three reach 4.0.
  const auto comparison = compare_groups({{"a", {4.0, 3.0, 4.5}}});
  const Reach reach = reach_loss(comparison.groups[0], 4.0);
  EXPECT_EQ(reach.runs, 3);
  EXPECT_EQ(reach.trained.count, 2);
  EXPECT_DOUBLE_EQ(reach.trained.mean, (3000 + 2000) / 2.0);
  EXPECT_EQ(reach_loss(comparison.groups[0], 2.0).trained.count, 0);
}

TEST(TargetLoss, IsTheBaselinesMeanAtItsEnd) {
  EXPECT_DOUBLE_EQ(target_loss(compare_groups({{"a", {4.0, 3.0}}, {"b", {1.0}}})).value(), 3.5);
  EXPECT_FALSE(target_loss(compare_runs({make_run("a", 1, {})})).has_value());
}

}  // namespace
}  // namespace prism
