#include "prism/analysis/attention/compare_distances.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/message_of.h"

namespace prism {
namespace {

/// The distances of a model from (heads, distance) per layer.
AttentionDistance seed(const std::vector<std::pair<int64_t, double>>& layers) {
  AttentionDistance result;
  for (const auto& [heads, distance] : layers)
    result.layers.push_back(
        {static_cast<int64_t>(result.layers.size()), heads, 48 / heads, distance, 0.5 * distance, {}});
  return result;
}

TEST(AverageDistances, AreMeansAndDeviationsOverSeeds) {
  const auto rows = average_distances({seed({{2, 10}, {4, 30}}), seed({{2, 14}, {4, 30}})});
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].heads, 2);
  EXPECT_EQ(rows[0].head_dim, 24);
  EXPECT_EQ(rows[0].seeds, 2);
  EXPECT_DOUBLE_EQ(rows[0].distance, 12);
  EXPECT_DOUBLE_EQ(rows[0].seed_sd, std::sqrt(8.0));
  EXPECT_DOUBLE_EQ(rows[0].head_sd, 6);
  EXPECT_EQ(rows[1].layer, 1);
  EXPECT_DOUBLE_EQ(rows[1].seed_sd, 0);
}

TEST(CompareDistances, PairsSeedsInTheOrderGivenWhereThereAreAsMany) {
  const auto rows = compare_distances({seed({{2, 11}}), seed({{2, 23}})}, {seed({{4, 10}}), seed({{4, 20}})});
  EXPECT_TRUE(rows[0].paired);
  EXPECT_FALSE(rows[0].same_heads);
  EXPECT_EQ(rows[0].against.heads, 4);
  EXPECT_DOUBLE_EQ(rows[0].difference, 2);
  EXPECT_DOUBLE_EQ(rows[0].difference_sd, std::sqrt(2.0));
  const auto crossed = compare_distances({seed({{2, 23}}), seed({{2, 11}})}, {seed({{4, 10}}), seed({{4, 20}})});
  EXPECT_DOUBLE_EQ(crossed[0].difference, 2);
  EXPECT_GT(crossed[0].difference_sd, 10);
}

TEST(CompareDistances, AddsDeviationsInSquaresWhereSeedsCannotBePaired) {
  const auto rows =
      compare_distances({seed({{4, 11}}), seed({{4, 13}})}, {seed({{4, 10}}), seed({{4, 20}}), seed({{4, 30}})});
  EXPECT_FALSE(rows[0].paired);
  EXPECT_TRUE(rows[0].same_heads);
  EXPECT_DOUBLE_EQ(rows[0].difference, -8);
  EXPECT_DOUBLE_EQ(rows[0].difference_sd, std::sqrt(2.0 + 100.0));
}

TEST(CompareDistances, RefusesOtherDepthsAndArmsOfTwoSchedules) {
  EXPECT_REFUSED(compare_distances({seed({{2, 1}})}, {seed({{2, 1}, {4, 1}})}), "1 and 2");
  EXPECT_REFUSED(average_distances({seed({{2, 1}}), seed({{4, 1}})}), "one head schedule");
  EXPECT_REFUSED(compare_distances({seed({{2, 1}})}, {}), "found none");
}

}  // namespace
}  // namespace prism
