#include "prism/core/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/core/error.h"

namespace prism {
namespace {

TEST(Median, IsTheMiddleOrTheMeanOfTheMiddleTwo) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
}

TEST(Quantiles, LieBetweenTheValuesAroundTheirPosition) {
  EXPECT_EQ(quantiles({5, 1, 2}, {0, 0.25, 0.5, 0.75, 1}), (std::vector<double>{1, 1.5, 2, 3.5, 5}));
  EXPECT_EQ(quantiles({4, 1, 2, 3}, {0.5}), (std::vector<double>{2.5}));
  EXPECT_EQ(quantiles({7}, {0, 0.999, 1}), (std::vector<double>{7, 7, 7}));
}

TEST(Statistic, DividesByOneLessThanTheCount) {
  const Statistic found = statistic({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_EQ(found.count, 8);
  EXPECT_DOUBLE_EQ(found.mean, 5);
  EXPECT_DOUBLE_EQ(found.deviation, std::sqrt(32.0 / 7));
  EXPECT_DOUBLE_EQ(found.standard_error(), std::sqrt(32.0 / 7 / 8));
}

TEST(Statistic, KeepsTheDigitsOfNearlyEqualValues) {
  EXPECT_NEAR(statistic({1e9 + 1, 1e9 + 2, 1e9 + 3}).deviation, 1, 1e-12);
}

TEST(Statistic, OfOneValueHasNoDeviation) {
  EXPECT_EQ(statistic({7}).deviation, 0);
  EXPECT_EQ(statistic({7}).standard_error(), 0);
  EXPECT_EQ(statistic({}).count, 0);
}

TEST(MeanDifference, OfPairsScattersAsTheirDifferencesDo) {
  const Statistic paired = mean_difference({11, 21, 34}, {10, 20, 30}, /*paired=*/true);
  EXPECT_DOUBLE_EQ(paired.mean, 2);
  EXPECT_DOUBLE_EQ(paired.deviation, std::sqrt(3.0));
  EXPECT_EQ(paired.count, 3);
}

TEST(MeanDifference, WithoutPairsAddsDeviationsInSquares) {
  const Statistic apart = mean_difference({1, 3}, {10, 10, 16}, /*paired=*/false);
  EXPECT_DOUBLE_EQ(apart.mean, -10);
  EXPECT_DOUBLE_EQ(apart.deviation, std::sqrt(2.0 + 12.0));
  EXPECT_EQ(apart.count, 2);
  EXPECT_EQ(mean_difference({1}, {10, 16}, /*paired=*/false).deviation, 0);
}

TEST(TInterval, HasTheQuantilesOfTheTables) {
  // Student's t, 97.5%: 12.7062 for 1 degree of freedom, 4.30265 for 2, 2.26216 for 9.
  const Interval two = t_interval({.mean = 1, .deviation = std::sqrt(2.0), .count = 2}, 0.95);
  EXPECT_NEAR(two.high - 1, 12.7062, 1e-4);
  EXPECT_NEAR(1 - two.low, 12.7062, 1e-4);
  EXPECT_NEAR(t_interval({.mean = 0, .deviation = std::sqrt(3.0), .count = 3}, 0.95).high, 4.30265, 1e-5);
  EXPECT_NEAR(t_interval({.mean = 0, .deviation = std::sqrt(10.0), .count = 10}, 0.95).high, 2.26216, 1e-5);
}

TEST(TInterval, IsEverythingBelowTwoValuesAndAPointWithoutSpread) {
  EXPECT_FALSE(t_interval(statistic({7}), 0.95).excludes(-1e300));
  const Interval point = t_interval(statistic({7, 7, 7}), 0.95);
  EXPECT_FALSE(point.excludes(7));
  EXPECT_TRUE(point.excludes(6.9));
}

TEST(PairedScore, HasMcNemarsExactProbability) {
  std::vector<double> a(20, 1), b(20, 1);
  for (size_t i = 0; i < 10; ++i) b[i] = 0;   // a alone is right on 10
  for (size_t i = 10; i < 12; ++i) a[i] = 0;  // b alone on 2
  const auto paired = paired_score(a, b);
  EXPECT_EQ(paired.items, 20);
  EXPECT_EQ(paired.more_a, 10);
  EXPECT_EQ(paired.more_b, 2);
  EXPECT_DOUBLE_EQ(paired.difference, 8.0 / 20);
  EXPECT_NEAR(paired.p, 2.0 * (1 + 12 + 66) / 4096, 1e-12);
  // 10 differences of 1, 2 of -1 and 8 of 0, whose mean is 0.4.
  EXPECT_NEAR(paired.standard_error, std::sqrt((10 * 0.36 + 2 * 1.96 + 8 * 0.16) / 19 / 20), 1e-12);
  EXPECT_TRUE(paired.interval.excludes(0));
  const auto same = paired_score(a, a);
  EXPECT_EQ(same.p, 1);
  EXPECT_EQ(same.difference, 0);
  EXPECT_THROW(paired_score(a, {1}), InternalError);
}

}  // namespace
}  // namespace prism
