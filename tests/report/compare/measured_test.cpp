#include "prism/report/compare/measured.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/report/made_runs.h"

namespace prism {
namespace {

TEST(LayerDistances, AreMeansOverSeeds) {
  const auto layers = layer_distances(measured_runs().groups[0]);
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[1].layer, 1);
  EXPECT_DOUBLE_EQ(layers[1].distance.mean, 22);
  EXPECT_DOUBLE_EQ(layers[1].distance.deviation, std::sqrt(8.0));
}

TEST(LayerDistances, LeaveOutALayerThatOneSeedLacksButNotASeedWithoutAny) {
  RunGroup group = measured_runs().groups[0];
  group.runs[0].distances.pop_back();
  EXPECT_EQ(layer_distances(group).size(), 2U);
  group.runs[0].distances.clear();
  const auto layers = layer_distances(group);
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_EQ(layers[0].distance.count, 1);
}

TEST(DistanceDifferences, ArePairedBySeedAndKnowWhereHeadsDiffer) {
  const Comparison comparison = measured_runs();
  const auto layers = distance_differences(comparison.groups[1], comparison.groups[0]);
  ASSERT_EQ(layers.size(), 3U);
  EXPECT_TRUE(layers[0].other_heads);
  EXPECT_TRUE(layers[1].other_heads);
  EXPECT_FALSE(layers[2].other_heads);
  EXPECT_DOUBLE_EQ(layers[0].distance.difference.mean, 5.5) << "of 5 and 6";
  EXPECT_DOUBLE_EQ(layers[0].distance.difference.deviation, std::sqrt(0.5));
  EXPECT_TRUE(layers[0].distance.paired());
}

TEST(TextLosses, ArePerTokenWithTheirSeeds) {
  const Comparison comparison = measured_runs();
  EXPECT_EQ(measured_texts(comparison), (std::vector<std::string>{"a text"}));
  const auto losses = text_losses(comparison.groups[1], "a text");
  ASSERT_EQ(losses.size(), 2U);
  EXPECT_EQ(losses[1].seed, 2);
  EXPECT_DOUBLE_EQ(losses[1].value, 4.02);
  EXPECT_TRUE(text_losses(comparison.groups[1], "another").empty());
}

}  // namespace
}  // namespace prism
