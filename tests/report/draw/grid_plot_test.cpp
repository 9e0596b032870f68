// Grids of shares: boxes are at the right positions, and adjacent cells are joined.
#include "prism/report/draw/grid_plot.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"

namespace prism {
namespace {

TEST(GridPlot, JoinsNeighboursOfOneShadeAndLeavesOutWhatIsNotThere) {
  const ShadeGrid grid{.rows = 2,
                       .columns = 4,
                       .shares = {1, kNoShare, kNoShare, kNoShare, 1, 1, 0, 0.5},
                       .first_row = 10,
                       .row_step = 5,
                       .column_step = 2};
  const Plot plot = grid_plot("g", "A grid", grid);
  EXPECT_TRUE(plot.square);
  EXPECT_EQ(plot.x.high, 8);
  EXPECT_EQ(plot.y.low, 20);  // rows count downwards
  EXPECT_EQ(plot.y.high, 10);
  ASSERT_EQ(plot.series.size(), 3u);  // 0, a half, 1: from pale to strong
  EXPECT_LT(plot.series[0].opacity, plot.series[1].opacity);
  EXPECT_LT(plot.series[1].opacity, plot.series[2].opacity);
  ASSERT_EQ(plot.series[2].points.size(), 2u);
  const auto& joined = plot.series[2].points[1];
  EXPECT_EQ(joined.x_bar.low, 0);
  EXPECT_EQ(joined.x_bar.high, 4);
  EXPECT_EQ(joined.y_bar.low, 15);
  EXPECT_EQ(joined.y_bar.high, 20);
  EXPECT_EQ(plot.series[0].points.size(), 1u);
}

TEST(AttentionGrid, ScalesRowsToTheirLargestShareAndLeavesOutLaterKeys) {
  // The last two of three cells have queries.
  const ShadeGrid grid = attention_grid(2, 3, {0.25, 0.5, 0.25, 0.5, 0, 0.25}, 4);
  EXPECT_EQ(grid.shares, (std::vector<double>{0.5, 1, kNoShare, 1, 0, 0.5}));
  EXPECT_EQ(grid.first_row, 4);
  EXPECT_EQ(grid.column_step, 4);
  EXPECT_THROW(attention_grid(3, 2, std::vector<double>(6), 1), InternalError);
}

TEST(GridPlot, RefusesSharesThatDoNotFillIt) {
  EXPECT_THROW(grid_plot("g", "A grid", {.rows = 2, .columns = 2, .shares = {1}}), InternalError);
}

TEST(GridPlot, IsDrawnWhole) {
  std::vector<double> shares;
  for (int i = 0; i < 40 * 40; ++i) shares.push_back(i % 2);
  const std::string svg = draw_plot(grid_plot("g", "A grid", {.rows = 40, .columns = 40, .shares = shares}), "gnuplot");
  // More boxes than the maximum number of points of a curve; all must be drawn.
  size_t boxes = 0;
  for (size_t at = svg.find("polygon"); at != std::string::npos; at = svg.find("polygon", at + 1)) ++boxes;
  EXPECT_GE(boxes, 1600u);
}

}  // namespace
}  // namespace prism
