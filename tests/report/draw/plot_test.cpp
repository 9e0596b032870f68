#include "prism/report/draw/plot.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prism/core/error.h"
#include "tests/report/has.h"
#include "tests/report/made_plots.h"

namespace prism {
namespace {

TEST(GnuplotScript, HasTheDataInTheAxisUnitAndTheSeriesStyle) {
  const std::string script = gnuplot_script(small_plot());
  EXPECT_TRUE(has(script, "set xrange [0:4]\n")) << script;
  EXPECT_TRUE(has(script, "set yrange [3.5:5.25]\n"));
  EXPECT_TRUE(has(script, "$data0 << EOD\n1 4 0 0 3.9 4.1\n4 3.75 0 0 3.7 3.8\nEOD\n"));
  EXPECT_TRUE(has(script, "plot $data0 using 1:5:6 with filledcurves"));
  EXPECT_TRUE(has(script, "$data1 using 1:2 with linespoints lw 1.2 dt (7,3) pt 5"));
  EXPECT_FALSE(has(script, "set arrow")) << "no zero line was asked for";
}

TEST(GnuplotScript, ChoosesTicksOfAlikeDecimals) {
  Plot plot = small_plot();
  plot.y = {.low = -0.051, .high = 0.009, .zero_line = true};
  const std::string script = gnuplot_script(plot);
  EXPECT_TRUE(has(script, "set ytics 0.01\nset format y \"%.2f\"")) << script;
  EXPECT_TRUE(has(script, "set xtics 0.5\nset format x \"%.1f\""));
  EXPECT_TRUE(has(script, "set arrow from graph 0, first 0 to graph 1, first 0"));
}

TEST(GnuplotScript, CountsWhatIsCountedInWholeSteps) {
  Plot plot = small_plot();
  plot.x = {.label = "layer", .low = 0.5, .high = 2.5, .least_step = 1};
  EXPECT_TRUE(has(gnuplot_script(plot), "set xtics 1\nset format x \"%.0f\"")) << gnuplot_script(plot);
}

TEST(GnuplotScript, GivesRowsTheirPlacesFromTheTopAndNoNumbers) {
  const std::string script = gnuplot_script(row_plot());
  EXPECT_TRUE(has(script, "unset ytics\nset yrange [1.28:-0.72]\n")) << script;
  EXPECT_TRUE(has(script, "using 1:2:3:4:5:6 with xyerrorbars"));
  EXPECT_TRUE(has(script, "set arrow from first 0, graph 0 to first 0, graph 1"));
}

TEST(GnuplotScript, HoldsNoTextOfARun) {
  for (const char* text : {"top row", "script>", "alert", "rows", "<two>"}) {
    EXPECT_FALSE(has(gnuplot_script(row_plot()) + gnuplot_script(small_plot()), text)) << text;
  }
}

TEST(GnuplotScript, ThinsLongCurvesAndKeepsTheirEnds) {
  Plot plot = small_plot();
  plot.x.unit = 1e3;
  plot.series = {{PlotStyle::kLine, 0, {}}};
  for (int i = 1; i <= 100'000; ++i) plot.series[0].points.push_back({.x = i * 10.0, .y = 4.0});
  const std::string script = gnuplot_script(plot);
  EXPECT_LT(script.size(), 20'000U);
  EXPECT_TRUE(has(script, "<< EOD\n0.01 4 ")) << "the first point, in thousands";
  EXPECT_TRUE(has(script, "\n1000 4 0 0 0 0\nEOD\n")) << "the last";
}

TEST(GnuplotScript, RefusesASeriesWithoutPoints) {
  Plot plot = small_plot();
  plot.series[0].points.clear();
  EXPECT_THROW(gnuplot_script(plot), InternalError);
}

TEST(PixelOf, MapsTheAxesOntoTheFrame) {
  const Plot plot = small_plot();
  const PlotFrame frame = plot_frame(plot);
  const Pixel corner = pixel_of(plot, 0, 3.5), middle = pixel_of(plot, 2e6, 4.375);
  EXPECT_DOUBLE_EQ(corner.x, frame.left);
  EXPECT_DOUBLE_EQ(corner.y, frame.bottom);
  EXPECT_DOUBLE_EQ(middle.x, (frame.left + frame.right) / 2);
  EXPECT_DOUBLE_EQ(middle.y, (frame.top + frame.bottom) / 2);
}

TEST(PixelOf, PutsTheFirstRowOnTop) {
  const Plot plot = row_plot();
  EXPECT_LT(pixel_of(plot, 0, 0).y, pixel_of(plot, 0, 1).y);
  EXPECT_GT(pixel_of(plot, 0, 0).y, plot_frame(plot).top);
  EXPECT_LT(pixel_of(plot, 0, 1).y, plot_frame(plot).bottom);
}

TEST(PixelOf, IsWhereGnuplotDraws) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  for (const Plot& plot : {small_plot(), row_plot()}) {
    const std::string svg = draw_plot(plot, "gnuplot");
    const auto& point = plot.series.back().points.back();
    const Pixel place = pixel_of(plot, point.x, point.y);
    bool drawn = false;  // true if there is a marker within a pixel
    for (size_t at = svg.find("translate("); at != std::string::npos; at = svg.find("translate(", at + 1)) {
      double x = 0, y = 0;
      if (std::sscanf(svg.c_str() + at, "translate(%lf,%lf) scale", &x, &y) != 2) continue;
      drawn |= std::abs(x - place.x) < 1 && std::abs(y - place.y) < 1;
    }
    EXPECT_TRUE(drawn) << plot.id << " at " << place.x << ", " << place.y << "\n" << svg;
  }
}

TEST(DrawPlot, DrawsWithTheInstalledGnuplot) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const std::string svg = draw_plot(small_plot(), "gnuplot");
  EXPECT_TRUE(has(svg, "trained tokens (millions)"));
  EXPECT_TRUE(has(svg, "var(--series-1)"));
  EXPECT_TRUE(has(svg, "var(--plot-ink)"));
  EXPECT_TRUE(has(svg, "id=\"demo-plot_2\" data-series=\"1\"")) << "what the page's script hides";
  EXPECT_FALSE(has(svg, "rgb(")) << "every colour is the page's";
}

}  // namespace
}  // namespace prism
