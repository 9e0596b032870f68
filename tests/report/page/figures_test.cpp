#include "prism/report/page/figures.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "prism/report/draw/series.h"
#include "tests/report/made_runs.h"

namespace prism {
namespace {

std::vector<PlotSeries> of_style(const Plot& plot, PlotStyle style) {
  std::vector<PlotSeries> found;
  for (const auto& series : plot.series) {
    if (series.style == style) found.push_back(series);
  }
  return found;
}

Comparison three_groups() {
  return compare_groups({{"base", {4.0, 4.5, 5.0}}, {"low", {3.9, 4.41, 4.89}}, {"same", {4.1, 4.4, 5.0}}});
}

/// Groups of three seeds each with training curves and rates.
Comparison sweep(size_t arms) {
  std::vector<Run> runs;
  for (size_t arm = 0; arm < arms; ++arm) {
    for (Run run : runs_ending_at("arm " + std::to_string(arm), {4.0 + 0.1 * static_cast<double>(arm), 4.1, 4.2})) {
      for (int i = 1; i <= 200; ++i) run.train.push_back({15 * i, 5.0 - 0.001 * i});
      run.rate = 100.0 + static_cast<double>(arm);
      runs.push_back(run);
    }
  }
  return compare_runs(runs);
}

TEST(ValidPlot, HasAScaleOfItsOwn) {
  std::vector<prism::Run> runs;
  for (auto run : runs_ending_at("base", {4.0, 4.2})) {
    for (int i = 1; i <= 200; ++i) run.train.push_back({15 * i, 8.0 - 0.01 * i});
    run.valid.insert(run.valid.begin() + 1, {2000, 4.5});
    runs.push_back(run);
  }
  const auto comparison = compare_runs(runs);
  EXPECT_GT(train_plot(comparison).y.high, 7.0);
  EXPECT_LT(valid_plot(comparison).y.high, 5.2);
  EXPECT_LE(valid_plot(comparison).y.low, 4.0);
}

TEST(DifferencePlot, HasABandOfOneDeviationOfThePairs) {
  const auto bands = of_style(difference_plot(three_groups()), PlotStyle::kBand);
  ASSERT_EQ(bands.size(), 2U);
  const auto low = std::find_if(bands.begin(), bands.end(), [](const PlotSeries& band) { return band.series == 1; });
  ASSERT_NE(low, bands.end());
  EXPECT_EQ(low->points.back().x, 3000);
  // Differences -0.10, -0.09, -0.11: deviation 0.01, although each side has a deviation of 0.5.
  EXPECT_NEAR(low->points.back().y_bar.low, -0.11, 1e-9);
  EXPECT_NEAR(low->points.back().y_bar.high, -0.09, 1e-9);
}

TEST(ForestPlot, HasARowAnIntervalAndTheSeedsForEveryGroupButTheBaseline) {
  const Plot plot = forest_plot(three_groups());
  ASSERT_EQ(plot.rows.size(), 2U);
  EXPECT_EQ(plot.rows[0].label, "low");
  EXPECT_EQ(plot.rows[0].series, 1);
  const auto means = of_style(plot, PlotStyle::kBars), seeds = of_style(plot, PlotStyle::kDots);
  ASSERT_EQ(means.size(), 2U);
  ASSERT_EQ(seeds.size(), 2U);
  const PlotPoint& low = means[0].points.at(0);
  EXPECT_NEAR(low.x, -0.1, 1e-9);
  EXPECT_NEAR(low.x_bar.low, -0.1248414, 1e-6) << "t(0.975; 2) * 0.01 / sqrt(3)";
  EXPECT_NEAR(low.x_bar.high, -0.0751586, 1e-6);
  EXPECT_EQ(low.y, 0);
  EXPECT_EQ(low.text, "−0.1000 ± 0.0100, 95% interval −0.1248 to −0.0752");
  EXPECT_EQ(seeds[0].points.size(), 3U);
  EXPECT_EQ(seeds[0].points[2].text, "seed 3: −0.1100");
  EXPECT_TRUE(plot.x.zero_line);
  EXPECT_LT(plot.x.low, low.x_bar.low);
  EXPECT_GT(plot.x.high, 0);
}

TEST(ForestPlot, DrawsNoBarWhereThereIsNoInterval) {
  const Plot plot = forest_plot(compare_groups({{"base", {4.0}}, {"low", {3.0}}}));
  ASSERT_EQ(plot.series.size(), 1U);
  const PlotPoint& point = plot.series[0].points.at(0);
  EXPECT_EQ(point.x_bar.low, point.x);
  EXPECT_EQ(point.x_bar.high, point.x);
  EXPECT_EQ(point.text, "−1.0000");
}

TEST(ParetoPlot, JoinsTheFrontAndHasBarsBothWays) {
  std::vector<prism::Run> runs;
  for (const auto& run : runs_ending_at("slow", {3.0, 3.2})) runs.push_back(run);
  for (const auto& run : runs_ending_at("fast", {4.0, 4.2})) runs.push_back(run);
  for (const auto& run : runs_ending_at("beaten", {4.4, 4.4})) runs.push_back(run);
  const double rates[] = {100, 120, 300, 340, 200, 200};
  for (size_t i = 0; i < runs.size(); ++i) runs[i].rate = rates[i];
  const Plot plot = pareto_plot(compare_runs(runs));
  const auto front = of_style(plot, PlotStyle::kGuide), marks = of_style(plot, PlotStyle::kBars);
  ASSERT_EQ(front.size(), 1U);
  ASSERT_EQ(front[0].points.size(), 2U);
  EXPECT_EQ(front[0].points[0].x, 110);
  EXPECT_EQ(front[0].points[1].x, 320);
  ASSERT_EQ(marks.size(), 3U);
  EXPECT_NEAR(marks[0].points[0].x_bar.high, 110 + std::sqrt(200.0), 1e-9);
  EXPECT_NEAR(marks[0].points[0].y_bar.low, 3.1 - std::sqrt(0.02), 1e-9);
  EXPECT_EQ(marks[0].points[0].text, "3.1000 ± 0.1414 at 110 ± 14 tokens/s, on the front");
}

TEST(ParetoPlot, ShowsNothingOfOneGroup) {
  EXPECT_TRUE(pareto_plot(sweep(1)).series.empty());
  EXPECT_TRUE(pareto_plot(three_groups()).series.empty()) << "no rates";
}

TEST(TrainPlot, HasALineForEachRunUntilTheyAreTooManyThenOneForEachGroup) {
  EXPECT_EQ(of_style(train_plot(sweep(4)), PlotStyle::kLine).size(), 12U);
  EXPECT_FALSE(shows_mean_training(sweep(4)));
  EXPECT_EQ(of_style(train_plot(sweep(10)), PlotStyle::kLine).size(), 10U);
  EXPECT_TRUE(shows_mean_training(sweep(10)));
}

TEST(TrainPlot, CanBePointedAtHereAndThereAndAtItsEnd) {
  const Plot plot = train_plot(sweep(10));
  const auto& points = plot.series.front().points;
  const auto told =
      std::count_if(points.begin(), points.end(), [](const PlotPoint& point) { return !point.text.empty(); });
  EXPECT_LE(told, 60);
  EXPECT_GE(told, 40);
  EXPECT_EQ(points.back().text, "3,000 tokens: 4.8000 ± 0.0000");
}

TEST(Figures, CountTokensInAUnitThatKeepsNumbersShort) {
  const auto label = [](int64_t tokens) {
    return valid_plot(compare_runs({make_run("a", 1, {{tokens, 4.0}})})).x.label;
  };
  EXPECT_EQ(label(1500), "trained tokens");
  EXPECT_EQ(label(500'000), "trained tokens (thousands)");
  EXPECT_EQ(label(4'000'000), "trained tokens (millions)");
  EXPECT_EQ(label(30'000'000'000), "trained tokens (billions)");
}

TEST(Figures, ShowNothingWithoutEvaluations) {
  const Comparison comparison = compare_runs({make_run("a", 1, {}), make_run("b", 1, {})});
  for (const Plot& plot : {train_plot(comparison), valid_plot(comparison), difference_plot(comparison),
                           forest_plot(comparison), share_plot(comparison), pareto_plot(comparison),
                           distance_plot(comparison), distance_difference_plot(comparison)}) {
    EXPECT_TRUE(plot.series.empty()) << plot.id;
  }
}

TEST(SharePlot, HasALineForTrainingAndPointsForValidation) {
  const auto plain = make_run("plain", 1, {{1000, 0.5}});
  auto budget = make_run("budget", 1, {{1000, 0.6}});
  budget.train_share = {{500, 0.5}, {1000, 0.25}};
  budget.valid_share = {{1000, 0.3}};
  const Plot plot = share_plot(compare_runs({plain, budget}));
  ASSERT_EQ(plot.series.size(), 2U) << "the run without budgets has none";
  const auto lines = of_style(plot, PlotStyle::kLine), points = of_style(plot, PlotStyle::kDots);
  ASSERT_EQ(lines.size(), 1U);
  ASSERT_EQ(points.size(), 1U);
  EXPECT_EQ(lines[0].points.size(), 2U);
  EXPECT_EQ(points[0].points[0].y, 0.3);
  EXPECT_EQ(points[0].points[0].text, "validation, 1,000 tokens: 0.3000");
  EXPECT_EQ(lines[0].series, points[0].series);
  EXPECT_EQ(plot.y.low, 0);
}

TEST(DistancePlot, HasALineOverTheLayersCountedFromZero) {
  const Plot plot = distance_plot(measured_runs());
  const auto lines = of_style(plot, PlotStyle::kPoints);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_EQ(lines[0].points.front().x, 0);
  EXPECT_EQ(lines[0].points.back().x, 2);
  EXPECT_EQ(lines[0].points.back().text, "layer 2: 30.0 ± 0.0 tokens");
  EXPECT_EQ(plot.x.least_step, 1);
  EXPECT_LE(plot.y.low, 0);
}

TEST(DistanceDifferencePlot, ShadesTheLayersWithOtherHeads) {
  const Plot plot = distance_difference_plot(measured_runs());
  const auto areas = of_style(plot, PlotStyle::kBoxes);
  ASSERT_EQ(areas.size(), 1U);
  EXPECT_EQ(areas[0].series, 1) << "hidden with its group";
  ASSERT_EQ(areas[0].points.size(), 1U) << "layers 0 and 1 are one area";
  EXPECT_EQ(areas[0].points[0].x_bar.low, -0.5);
  EXPECT_EQ(areas[0].points[0].x_bar.high, 1.5);
  EXPECT_EQ(areas[0].points[0].y_bar.high, plot.y.high);
  EXPECT_EQ(of_style(plot, PlotStyle::kPoints)[0].points[0].text, "layer 0: +5.5 ± 0.7 tokens, other heads");
}

}  // namespace
}  // namespace prism
