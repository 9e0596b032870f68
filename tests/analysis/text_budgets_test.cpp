#include "prism/analysis/text_budgets.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "prism/core/fields.h"
#include "tests/data/labelled/made_classifier.h"

namespace prism {
namespace {

const std::vector<int32_t> kText = {5, 17, 40, 3, 99, 12};

TEST(TextBudgets, AreTheDecisionsOfEachLayer) {
  const auto found = read_text_budgets(make_classifier({.budget = "learned", .init_std = 0.3}), kText, /*maps=*/3);
  EXPECT_EQ(found.tokens, (std::vector<int64_t>(kText.begin(), kText.end())));
  EXPECT_LT(found.predicted, 3);
  ASSERT_EQ(found.layers.size(), 2u);
  for (const auto& layer : found.layers) {
    const auto& p = layer.probability;
    ASSERT_EQ(p.size(), 4u);
    EXPECT_NEAR(std::accumulate(p.begin(), p.end(), 0.0), 1, 1e-5);
    const auto kept = static_cast<size_t>(std::max(1.0, std::floor(4 * layer.share)));
    ASSERT_EQ(layer.kept.size(), kept);
    for (size_t h = 0; h < p.size(); ++h) {
      const bool is_kept = std::find(layer.kept.begin(), layer.kept.end(), static_cast<int64_t>(h)) != layer.kept.end();
      const auto larger = std::count_if(p.begin(), p.end(), [&](double other) { return other > p[h]; });
      EXPECT_EQ(is_kept, static_cast<size_t>(larger) < kept) << "the heads with the largest p";
    }
  }
  EXPECT_EQ(fields_to_json(found.layers[1])["layer"], 1);
}

TEST(TextBudgets, HaveMapsOfTheHeadsWithTheLargestP) {
  const auto found = read_text_budgets(make_classifier({.budget = "learned", .init_std = 0.3}), kText, /*maps=*/3);
  ASSERT_EQ(found.maps.size(), 2u * 3);
  for (size_t i = 0; i < found.maps.size(); ++i) {
    const auto& map = found.maps[i];
    const auto& layer = found.layers[i / 3];
    EXPECT_EQ(map.layer, layer.layer);
    EXPECT_EQ(map.probability, layer.probability[static_cast<size_t>(map.head)]);
    EXPECT_EQ(map.is_kept, std::find(layer.kept.begin(), layer.kept.end(), map.head) != layer.kept.end());
    if (i % 3 > 0) {
      EXPECT_LE(map.probability, found.maps[i - 1].probability);
    }
    ASSERT_EQ(map.weights.size(), kText.size());
    for (const auto& row : map.weights) EXPECT_NEAR(std::accumulate(row.begin(), row.end(), 0.0), 1, 1e-5);
  }
  EXPECT_EQ(read_text_budgets(make_classifier({.budget = "learned"}), kText, /*maps=*/9).maps.size(), 2u * 4);
  EXPECT_TRUE(read_text_budgets(make_classifier({.budget = "learned"}), kText, /*maps=*/0).maps.empty());
}

TEST(TextBudgets, LeaveOutLayersWithoutOneAndTokensBeyondTheContext) {
  const auto found = read_text_budgets(make_classifier({.context = 4}), kText, /*maps=*/2);
  EXPECT_EQ(found.tokens.size(), 4u);
  EXPECT_TRUE(found.layers.empty());
  EXPECT_TRUE(found.maps.empty());
}

}  // namespace
}  // namespace prism
