#include "prism/report/page/swept_plots.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "tests/report/made_runs.h"

namespace prism {
namespace {

/// The lines through points.
std::vector<PlotSeries> lines_of(const Plot& plot) {
  std::vector<PlotSeries> found;
  for (const auto& series : plot.series)
    if (series.style == PlotStyle::kPoints) found.push_back(series);
  return found;
}

/// Runs as prism sweep names them, with the swept field in their recipes.
Comparison swept_runs(const std::vector<std::pair<std::string, double>>& names, const std::string& field) {
  std::vector<Run> runs;
  for (const auto& [name, loss] : names)
    for (Run run : runs_ending_at(name, {loss, loss + 0.2})) {
      run.recipe = {{"model.rate", "1"}, {"train." + field, "0.001"}};
      runs.push_back(run);
    }
  return compare_runs(runs);
}

TEST(SweptPlots, HaveALineForEachArmOverTheSweptNumber) {
  const auto plots = swept_plots(swept_runs({{"wide_base_learning_rate=0.001", 4.0},
                                             {"wide_base_learning_rate=0.004", 3.5},
                                             {"wide_base_learning_rate=0.016", 3.7},
                                             {"main_learning_rate=0.004", 3.4},
                                             {"main_learning_rate=0.001", 3.9},
                                             {"another", 3.0}},
                                            "learning_rate"));
  ASSERT_EQ(plots.size(), 1U);
  EXPECT_EQ(plots[0].labels, (std::vector<std::string>{"wide_base", "main"}));
  const auto& plot = plots[0].plot;
  EXPECT_EQ(plot.x.label, "learning rate");
  const auto lines = lines_of(plot);
  ASSERT_EQ(lines.size(), 2U);
  ASSERT_EQ(lines[0].points.size(), 3U);
  EXPECT_NEAR(lines[0].points[1].y, 3.6, 1e-9);
  EXPECT_NEAR(lines[0].points[1].x - lines[0].points[0].x, 2, 1e-9) << "a factor of 4, as log2";
  ASSERT_EQ(lines[1].points.size(), 2U);
  EXPECT_LT(lines[1].points[0].x, lines[1].points[1].x) << "by value";
  ASSERT_EQ(plot.x.ticks.size(), 3U);
  EXPECT_EQ(plot.x.ticks[1].number, 0.004);
  EXPECT_NE(gnuplot_script(plot).find("set xtics (\"0.001\" "), std::string::npos);
}

TEST(SweptPlots, AreMissingWhereNothingIsSwept) {
  EXPECT_TRUE(swept_plots(compare_groups({{"base", {4.0, 4.5}}, {"low", {3.9, 4.41}}, {"same", {4.1, 4.4}}})).empty());
  EXPECT_TRUE(swept_plots(swept_runs({{"a_rate=1", 4.0}, {"a_rate=2", 3.5}}, "rate")).empty()) << "two values";
  EXPECT_TRUE(swept_plots(swept_runs({{"a_rate=1", 4.0}, {"a_rate=2", 3.5}, {"a_rate=x", 3.6}}, "rate")).empty());
  EXPECT_TRUE(
      swept_plots(swept_runs({{"a_rate=1_b=1", 4.0}, {"a_rate=2_b=1", 3.5}, {"a_rate=3_b=1", 3.6}}, "rate")).empty())
      << "two fields";
  EXPECT_TRUE(swept_plots(swept_runs({{"a_width=1", 4.0}, {"a_width=2", 3.5}, {"a_width=3", 3.6}}, "other")).empty())
      << "no field of the recipe";
  const auto close = swept_plots(swept_runs({{"rate=1", 4.0}, {"rate=2", 3.5}, {"rate=3", 3.6}}, "rate"));
  ASSERT_EQ(close.size(), 1U);
  EXPECT_EQ(lines_of(close[0].plot).at(0).points.at(2).x, 3) << "within a factor of four";
}

}  // namespace
}  // namespace prism
