#include "prism/core/numbers/item_figure.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numbers>

#include "prism/core/error.h"
#include "prism/core/random.h"

namespace prism {
namespace {

TEST(ItemFigure, IsAFunctionOfTheSumsOfScoresAndUnits) {
  const ItemScores items{{-2, -6}, {1, 3}};  // ratios of sums, not means of ratios
  EXPECT_NEAR(item_figure("word_perplexity", items), std::exp(2), 1e-12);
  EXPECT_NEAR(item_figure("bits_per_byte", {{-2, -10}, {1, 3}}), 3 / std::numbers::ln2, 1e-12);
  EXPECT_EQ(item_figure("acc", {{1, 0, 1, 1}, {1, 1, 1, 1}}), 0.75);
  EXPECT_THROW(item_figure("acc", {}), InternalError);
  EXPECT_THROW(item_figure("acc", {{1, 2}, {1}}), InternalError);
}

TEST(ItemFigure, HasTheErrorOfAMeanOrOfABootstrap) {
  EXPECT_NEAR(item_figure_error("acc", {{1, 0, 1, 1}, {1, 1, 1, 1}}), 0.25, 1e-12);
  EXPECT_EQ(item_figure_error("perplexity", {{-2}, {1}}), 0) << "of one item";
  EXPECT_TRUE(std::isnan(item_figure_error("word_perplexity", {{-1, -2}, {0, 1}}))) << "a sample without words";
}

TEST(PairedFigure, OfEqualUnitsHasTheErrorOfTheMeanDifference) {
  Random random(1);
  ItemScores a, b;
  std::vector<double> differences;
  for (int i = 0; i < 400; ++i) {
    a.scores.push_back(-3 * random.uniform());
    b.scores.push_back(-3 * random.uniform());
    differences.push_back((b.scores.back() - a.scores.back()) / std::numbers::ln2);
    a.units.push_back(1);
  }
  b.units = a.units;
  const auto paired = paired_figure("bits_per_byte", a, b);
  const auto expected = statistic(differences);
  EXPECT_NEAR(paired.difference, expected.mean, 1e-12);
  // 10,000 samples of a bootstrap: its own error is 0.7%.
  EXPECT_NEAR(paired.standard_error, expected.standard_error(), 0.03 * expected.standard_error());
  EXPECT_TRUE(std::isnan(paired.p));
  EXPECT_EQ(paired.items, 400);
}

TEST(PairedFigure, OfMeansIsThePairedScore) {
  const ItemScores a{{1, 1, 0}, {1, 1, 1}}, b{{0, 1, 0}, {1, 1, 1}};
  EXPECT_EQ(paired_figure("acc", a, b).difference, paired_score(a.scores, b.scores).difference);
  EXPECT_THROW(paired_figure("acc", a, {{0, 1, 0}, {1, 1, 2}}), InternalError) << "other units";
}

}  // namespace
}  // namespace prism
