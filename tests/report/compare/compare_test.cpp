#include "prism/report/compare/compare.h"

#include <gtest/gtest.h>

#include <cmath>

#include "prism/core/error.h"
#include "tests/core/message_of.h"
#include "tests/report/made_runs.h"

namespace prism {
namespace {

TEST(GroupRuns, GathersRunsThatDifferInTheSeedOnly) {
  std::vector<std::string> remarks;
  std::vector<prism::Run> runs = {make_run("a", 1, {}), make_run("b", 1, {}), make_run("a", 2, {})};
  runs[0].recipe = {{"train.seed", "1"}, {"train.rate", "0.1"}};
  runs[2].recipe = {{"train.seed", "2"}, {"train.rate", "0.1"}};
  const auto groups = group_runs(runs, &remarks);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].label, "a");
  EXPECT_EQ(groups[0].runs.size(), 2U);
  EXPECT_EQ(groups[1].label, "b");
  EXPECT_TRUE(remarks.empty());
}

TEST(GroupRuns, KeepsRunsOfOneNameAndSeedApartAndSaysSo) {
  std::vector<std::string> remarks;
  std::vector<prism::Run> runs = {make_run("a", 1, {}), make_run("a", 1, {})};
  runs[1].folder = "elsewhere";
  const auto groups = group_runs(runs, &remarks);
  ASSERT_EQ(groups.size(), 2U);
  EXPECT_EQ(groups[0].label, "a (runs/a_s1)");
  EXPECT_EQ(groups[1].label, "a (elsewhere)");
  ASSERT_EQ(remarks.size(), 1U);
  EXPECT_NE(remarks[0].find("\"a\""), std::string::npos);
}

TEST(GroupRuns, DoesNotAverageOverDifferentExperiments) {
  const prism::Run first = make_run("a", 1, {});
  const auto count = [&](auto change) {
    prism::Run second = make_run("a", 2, {});
    change(second);
    std::vector<std::string> remarks;
    return group_runs({first, second}, &remarks).size();
  };
  EXPECT_EQ(count([](prism::Run&) {}), 1U);
  EXPECT_EQ(count([](prism::Run& run) { run.recipe = {{"train.rate", "0.1"}}; }), 2U);
  EXPECT_EQ(count([](prism::Run& run) { run.schedule = "4x4"; }), 2U);
  EXPECT_EQ(count([](prism::Run& run) { run.layers = {{1, 1, 8}}; }), 2U);
  EXPECT_EQ(count([](prism::Run& run) { run.total = 7; }), 2U);
  EXPECT_EQ(count([](prism::Run& run) { run.dtype = "float32"; }), 2U);
  EXPECT_EQ(count([](prism::Run& run) { run.seed.reset(); }), 2U);
}

TEST(FindGroup, KnowsLabelsNamesAndFoldersAndAnswersAMisspelling) {
  const Comparison comparison = compare_runs({make_run("uniform", 1, {}), make_run("prism", 1, {})}, "prism");
  EXPECT_EQ(comparison.baseline, 1U);
  EXPECT_EQ(find_group(comparison.groups, ""), 0U);
  EXPECT_EQ(find_group(comparison.groups, "./runs/prism_s1"), 1U);
  try {
    find_group(comparison.groups, "prsm");
    FAIL() << "a misspelt baseline was taken";
  } catch (const InputError& error) {
    EXPECT_STREQ(error.what(),
                 "[report] expected a baseline that is one of prism and uniform; found \"prsm\"; did you mean prism?");
  }
}

TEST(CompareRuns, RefusesNoRuns) {
  EXPECT_THROW(compare_runs({}), InputError);
}

TEST(ValidationCurve, LeavesUnfinishedSeedsOutWhereSomeFinished) {
  RunGroup group{"a", {make_run("a", 1, {{10, 5.0}, {20, 4.0}}), make_run("a", 2, {{10, 9.0}}, false)}};
  auto curve = validation_curve(group);
  ASSERT_EQ(curve.size(), 2U);
  EXPECT_DOUBLE_EQ(curve[0].loss.mean, 5.0);
  EXPECT_EQ(curve[0].loss.count, 1);
  group.runs[0].finished = false;
  curve = validation_curve(group);
  ASSERT_EQ(curve.size(), 1U) << "only where both were evaluated";
  EXPECT_DOUBLE_EQ(curve[0].loss.mean, 7.0);
  EXPECT_DOUBLE_EQ(curve[0].loss.deviation, std::sqrt(8.0));
}

TEST(ValidationCurve, LeavesRunsWithoutEvaluationsOutWhereOthersHaveThem) {
  const RunGroup group{"a", {make_run("a", 1, {{10, 5.0}}, false), make_run("a", 2, {}, false)}};
  ASSERT_EQ(validation_curve(group).size(), 1U);
  EXPECT_EQ(validation_curve(group)[0].loss.count, 1);
}

TEST(LossDifference, IsTakenSeedBySeedWhereTheSeedsAgree) {
  // The seeds are in different orders. Each run is 0.1 or 0.3 below its partner, although the seeds are far apart.
  const RunGroup base{"base", {make_run("base", 1, {{10, 5.0}}), make_run("base", 2, {{10, 7.0}})}};
  const RunGroup other{"other", {make_run("other", 2, {{10, 6.7}}), make_run("other", 1, {{10, 4.9}})}};
  const auto gap = loss_difference(other, base);
  EXPECT_FALSE(gap.interpolated);
  ASSERT_EQ(gap.points.size(), 1U);
  EXPECT_TRUE(gap.points[0].loss.paired());
  EXPECT_NEAR(gap.points[0].loss.difference.mean, -0.2, 1e-12);
  EXPECT_NEAR(gap.points[0].loss.difference.deviation, std::sqrt(0.02), 1e-12);
}

TEST(LossDifference, AddsDeviationsInSquaresWhereTheSeedsDiffer) {
  const RunGroup base{"base", {make_run("base", 1, {{10, 5.0}}), make_run("base", 2, {{10, 5.6}})}};
  const RunGroup other{"other", {make_run("other", 3, {{10, 4.0}}), make_run("other", 4, {{10, 4.8}})}};
  const auto gap = loss_difference(other, base);
  ASSERT_EQ(gap.points.size(), 1U);
  EXPECT_FALSE(gap.points[0].loss.paired());
  EXPECT_NEAR(gap.points[0].loss.difference.mean, -0.9, 1e-12);
  EXPECT_NEAR(gap.points[0].loss.difference.deviation, std::sqrt(0.18 + 0.32), 1e-12);
  EXPECT_EQ(gap.points[0].loss.difference.count, 2);
}

TEST(LossDifference, HasNoDeviationBetweenSingleRuns) {
  const auto gap = loss_difference({"b", {make_run("b", 1, {{10, 4.0}})}}, {"a", {make_run("a", 1, {{10, 4.5}})}});
  ASSERT_EQ(gap.points.size(), 1U);
  EXPECT_DOUBLE_EQ(gap.points[0].loss.difference.mean, -0.5);
  EXPECT_EQ(gap.points[0].loss.difference.count, 1);
  EXPECT_FALSE(gap.points[0].loss.has_interval());
}

TEST(LossDifference, ComparesAtEqualTokensOnly) {
  const RunGroup base{"base", {make_run("base", 1, {{10, 5.0}, {20, 4.0}, {30, 3.5}})}};
  const RunGroup unfinished{"other", {make_run("other", 1, {{10, 4.5}, {20, 3.75}}, false)}};
  const auto gap = loss_difference(unfinished, base);
  ASSERT_EQ(gap.points.size(), 2U);
  EXPECT_EQ(gap.points[1].trained, 20);
  EXPECT_DOUBLE_EQ(gap.points[1].loss.difference.mean, -0.25);
  EXPECT_FALSE(gap.interpolated);
}

TEST(LossDifference, InterpolatesWithinTheSharedStretchWhereEvaluationsNeverMeet) {
  const RunGroup base{"base", {make_run("base", 1, {{10, 6.0}, {20, 5.0}, {30, 4.0}})}};
  const RunGroup other{"other", {make_run("other", 1, {{15, 5.0}, {25, 4.0}, {35, 3.0}})}};
  const auto gap = loss_difference(other, base);
  EXPECT_TRUE(gap.interpolated);
  ASSERT_EQ(gap.points.size(), 4U) << "15, 20, 25, 30: not 10, not 35";
  EXPECT_EQ(gap.points.front().trained, 15);
  EXPECT_EQ(gap.points.back().trained, 30);
  for (const auto& point : gap.points) EXPECT_NEAR(point.loss.difference.mean, -0.5, 1e-12) << point.trained;
}

TEST(LossDifference, ComparesOnlyTheSeedsThatBothHave) {
  const RunGroup base{"base",
                      {make_run("base", 1, {{10, 5.0}}), make_run("base", 2, {{10, 7.0}, {20, 6.0}}),
                       make_run("base", 3, {{10, 6.0}, {20, 5.0}})}};
  const RunGroup other{"other",
                       {make_run("other", 2, {{10, 6.9}, {20, 5.9}}), make_run("other", 4, {{10, 1.0}}),
                        make_run("other", 3, {{10, 5.8}, {20, 4.7}})}};
  const auto last = final_difference(other, base);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->trained, 20) << "seeds 1 and 4, which ended earlier, are not compared";
  ASSERT_EQ(last->loss.seeds.size(), 2U);
  EXPECT_EQ(last->loss.seeds[0].seed, 2);
  EXPECT_NEAR(last->loss.seeds[0].value, -0.1, 1e-12);
  EXPECT_EQ(last->loss.seeds[1].seed, 3);
  EXPECT_NEAR(last->loss.seeds[1].value, -0.3, 1e-12);
}

TEST(PairedDifference, HasTheIntervalOfStudentsTOverThePairs) {
  // Differences -0.1, -0.2, -0.3: mean -0.2, deviation 0.1; t(0.975; 2) = 4.302653 (any table) times 0.1 / sqrt(3).
  const auto gap = paired_difference({{3, 6.7}, {1, 4.9}, {2, 5.8}}, {{1, 5.0}, {2, 6.0}, {3, 7.0}});
  ASSERT_EQ(gap.seeds.size(), 3U);
  EXPECT_EQ(gap.seeds[0].seed, 1);
  EXPECT_NEAR(gap.difference.mean, -0.2, 1e-12);
  EXPECT_NEAR(gap.difference.deviation, 0.1, 1e-12);
  EXPECT_NEAR(gap.interval.low, -0.2 - 0.2484138, 1e-6);
  EXPECT_NEAR(gap.interval.high, -0.2 + 0.2484138, 1e-6);
  EXPECT_FALSE(gap.interval.excludes(0));
}

TEST(PairedDifference, IsSureOfSmallDifferencesBetweenSeedsFarApart) {
  // Without pairing, deviations of 1 would hide a difference of 0.01.
  const auto gap = paired_difference({{1, 3.99}, {2, 4.989}, {3, 5.991}}, {{1, 4.0}, {2, 5.0}, {3, 6.0}});
  EXPECT_TRUE(gap.interval.excludes(0)) << gap.interval.low << " " << gap.interval.high;
}

TEST(PairedDifference, HasNoIntervalWithoutTwoPairs) {
  for (const auto& gap :
       {paired_difference({{1, 3.0}}, {{1, 4.0}}), paired_difference({{1, 3.0}, {2, 3.1}}, {{3, 9.0}, {4, 9.1}}),
        paired_difference({{std::nullopt, 3.0}}, {{std::nullopt, 4.0}})}) {
    EXPECT_FALSE(gap.has_interval());
    EXPECT_FALSE(gap.interval.excludes(0));
  }
  EXPECT_EQ(paired_difference({}, {{1, 2.0}}).difference.count, 0);
}

TEST(FinalDifference, IsTheLastPointOfTheCurve) {
  const RunGroup base{"base", {make_run("base", 1, {{10, 6.0}, {20, 5.0}})}};
  const RunGroup other{"other", {make_run("other", 1, {{10, 6.5}, {20, 4.75}})}};
  const auto last = final_difference(other, base);
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->trained, 20);
  EXPECT_DOUBLE_EQ(last->loss.difference.mean, loss_difference(other, base).points.back().loss.difference.mean);
  EXPECT_DOUBLE_EQ(last->loss.difference.mean, -0.25);
  EXPECT_FALSE(final_difference({"fresh", {make_run("fresh", 1, {}, false)}}, base).has_value());
}

TEST(LossDifference, IsEmptyWithoutEvaluations) {
  const RunGroup base{"base", {make_run("base", 1, {{10, 6.0}})}}, fresh{"fresh", {make_run("fresh", 1, {}, false)}};
  EXPECT_TRUE(loss_difference(fresh, base).points.empty());
  EXPECT_TRUE(loss_difference(base, fresh).points.empty());
  EXPECT_TRUE(loss_difference(fresh, fresh).points.empty());
}

TEST(SmoothCurve, KeepsAStraightLineAndShortCurves) {
  std::vector<CurvePoint> line;
  for (int i = 0; i < 200; ++i) line.push_back({i * 10, 8.0 - 0.01 * i});
  const auto smooth = smooth_curve(line);
  ASSERT_EQ(smooth.size(), line.size());
  for (size_t i = 0; i < line.size(); ++i) EXPECT_NEAR(smooth[i].loss, line[i].loss, 1e-9) << "lags at " << i;
  const auto few = smooth_curve({{1, 5.0}, {2, 1.0}});
  EXPECT_DOUBLE_EQ(few[1].loss, 1.0);
  EXPECT_TRUE(smooth_curve({}).empty());
}

TEST(SmoothCurve, AveragesOverATwentiethOfTheCurve) {
  std::vector<CurvePoint> noise(200);
  for (size_t i = 0; i < noise.size(); ++i) noise[i] = {static_cast<int64_t>(i), i % 2 == 0 ? 3.0 : 5.0};
  // 11 points: six of one kind, five of the other.
  EXPECT_NEAR(smooth_curve(noise)[100].loss, 4.0, 1.0 / 11 + 1e-9);
  EXPECT_NE(smooth_curve(noise)[100].loss, 4.0);
}

TEST(CompareRuns, RefusesLossesOfOtherTokensOrAnotherText) {
  std::vector<prism::Run> runs = {make_run("a", 1, {{1000, 3.0}}), make_run("unknown", 1, {{1000, 3.0}}),
                                  make_run("b", 1, {{1000, 3.0}})};
  runs[0].tokenizer = runs[2].tokenizer = "one";
  runs[0].validation = runs[2].validation = "text";
  EXPECT_EQ(compare_runs(runs).groups.size(), 3U);
  runs[2].validation = "other";
  EXPECT_REFUSED(compare_runs(runs), "validation text; found text in runs/a_s1 and other in runs/b_s1");
  runs[0].validation = runs[2].validation = "1a, 0 tokens of the second halves";
  runs[1].validation = "1a, 30 tokens";
  EXPECT_REFUSED(compare_runs(runs), "found 1a, all tokens of the second halves in runs/a_s1 and 1a, 30 tokens in");
  runs[2].tokenizer = "two";
  EXPECT_REFUSED(compare_runs(runs), "use the same tokenizer; found one");
}

}  // namespace
}  // namespace prism
