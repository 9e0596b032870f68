#include "prism/report/plot.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/report/series.h"
#include "tests/report/run_folder.h"

namespace prism {
namespace {

Plot small_plot() {
  Plot plot{"demo", "loss (nats per token)", "A \"plot\" of <two> runs", {}, std::pair(3.5, 5.25), false};
  plot.series.push_back({PlotStyle::kBand, 1, {{1'000'000, 0, 3.9, 4.1}, {4'000'000, 0, 3.7, 3.8}}});
  plot.series.push_back({PlotStyle::kPoints, 1, {{1'000'000, 4.0, 0, 0}, {4'000'000, 3.75, 0, 0}}});
  return plot;
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What gnuplot 5.4 writes, cut down to one element of each kind.
constexpr const char* kSvg = R"svg(<?xml version="1.0" encoding="utf-8"  standalone="no"?>
<svg 
 width="480" height="320"
 viewBox="0 0 480 320"
 xmlns="http://www.w3.org/2000/svg"
 xmlns:xlink="http://www.w3.org/1999/xlink"
>

<title>Gnuplot</title>
<desc>Produced by GNUPLOT 5.4 patchlevel 4 </desc>

<g id="gnuplot_canvas">
<defs>
	<circle id='gpDot' r='0.5'/>
	<use xlink:href='#gpPt5' id='gpPt6' fill='currentColor' stroke='none'/>
	<filter id='textbox' x='0'>
	  <feFlood flood-color='#FFFFFF'/>
	</filter>
</defs>
<g fill="none" color="black" stroke="rgb(  1,   1,   1)" stroke-width="0.50">
	<path stroke='rgb(  1,   1,   0)'  d='M77.03,257.90 L72.53,257.90  '/>
	<g stroke="none" fill="rgb(1,1,1)"><text>0.5</text></g>
</g>
	<g id="gnuplot_plot_1" ><title>$data0 using 1:2:3</title>
		<polygon fill = 'rgb(  1,   2,   4)' fill-opacity = '0.180000' points = '1,2 3,4'/>
	</g>
	<path stroke='rgb(  1,   3,   2)' stroke-dasharray='6.0,3.0'  d='M1,2'/>
	<path stroke='rgb(200,  10,   2)'  d='M1,2'/>
</g>
</svg>
)svg";

TEST(GnuplotScript, HasTheDataInMillionsWithUnitsAndTheSeriesStyle) {
  const std::string script = gnuplot_script(small_plot());
  EXPECT_TRUE(has(script, "set xlabel \"trained tokens (millions)\"")) << script;
  EXPECT_TRUE(has(script, "set ylabel \"loss (nats per token)\""));
  EXPECT_TRUE(has(script, "set xrange [0:4]\n"));
  EXPECT_TRUE(has(script, "set yrange [3.5:5.25]\n"));
  EXPECT_TRUE(has(script, "$data0 << EOD\n1 3.9 4.1\n4 3.7 3.8\nEOD\n"));
  EXPECT_TRUE(has(script, "$data1 << EOD\n1 4\n4 3.75\nEOD\n"));
  EXPECT_TRUE(has(script, "plot $data0 using 1:2:3 with filledcurves"));
  EXPECT_TRUE(has(script, "$data1 using 1:2 with points pt 5"));
  EXPECT_FALSE(has(script, "set arrow")) << "no zero line was asked for";
}

TEST(GnuplotScript, ChoosesTicksOfAlikeDecimals) {
  Plot plot = small_plot();
  plot.y_range = {-0.051, 0.009};
  plot.zero_line = true;
  const std::string script = gnuplot_script(plot);
  EXPECT_TRUE(has(script, "set ytics 0.01\nset format y \"%.2f\"")) << script;
  EXPECT_TRUE(has(script, "set xtics 0.5\nset format x \"%.1f\""));
  EXPECT_TRUE(has(script, "set arrow from graph 0, first 0"));
}

TEST(GnuplotScript, CountsFewTokensInSmallerUnits) {
  Plot plot = small_plot();
  plot.series = {{PlotStyle::kLine, 0, {{500, 4, 0, 0}, {1500, 3, 0, 0}}}};
  EXPECT_TRUE(has(gnuplot_script(plot), "set xlabel \"trained tokens\""));
  plot.series[0].points.back().tokens = 500'000;
  EXPECT_TRUE(has(gnuplot_script(plot), "(thousands)"));
  plot.series[0].points.back().tokens = 30'000'000'000;
  EXPECT_TRUE(has(gnuplot_script(plot), "(billions)"));
}

TEST(GnuplotScript, ThinsLongCurvesAndKeepsTheirEnds) {
  Plot plot = small_plot();
  plot.series = {{PlotStyle::kLine, 0, {}}};
  for (int64_t i = 1; i <= 100'000; ++i) plot.series[0].points.push_back({i * 10, 4.0, 0, 0});
  const std::string script = gnuplot_script(plot);
  EXPECT_LT(script.size(), 20'000U);
  EXPECT_TRUE(has(script, "<< EOD\n0.01 4\n")) << "the first point, in thousands";
  EXPECT_TRUE(has(script, "\n1000 4\nEOD\n")) << "the last";
}

TEST(InlineSvg, TakesColoursFromThePageAndNothingFromOutside) {
  const std::string svg = inline_svg(kSvg, small_plot());
  EXPECT_TRUE(has(svg, "<path style=\"stroke:var(--plot-ink)\"  d=")) << svg;
  EXPECT_TRUE(has(svg, "style=\"stroke:var(--plot-grid)\""));
  EXPECT_TRUE(has(svg, "<g stroke=\"none\" style=\"fill:var(--plot-grid)\">"));
  EXPECT_TRUE(has(svg, "<polygon style=\"fill:var(--series-4)\" fill-opacity"));
  EXPECT_TRUE(has(svg, "style=\"stroke:var(--series-2);opacity:.4\""));
  EXPECT_TRUE(has(svg, "stroke='rgb(200,  10,   2)'")) << "a colour that stands for nothing stays";
  EXPECT_FALSE(has(svg, "http"));
  EXPECT_FALSE(has(svg, "xmlns"));
  EXPECT_FALSE(has(svg, "color=\"black\""));
}

TEST(InlineSvg, HasADescriptionScalesAndSharesNoIds) {
  const std::string svg = inline_svg(kSvg, small_plot());
  EXPECT_TRUE(
      svg.starts_with("<svg class=\"plot\" viewBox=\"0 0 480 320\" role=\"img\" "
                      "aria-label=\"A &quot;plot&quot; of &lt;two&gt; runs\">"));
  EXPECT_FALSE(has(svg, "<title>"));
  EXPECT_FALSE(has(svg, "<desc>"));
  EXPECT_FALSE(has(svg, "<filter"));
  EXPECT_FALSE(has(svg, " width=\"480\""));
  EXPECT_TRUE(has(svg, "<use href='#demo-point5' id='demo-point6'"));
  EXPECT_TRUE(has(svg, "id=\"demo-plot_1\""));
}

TEST(InlineSvg, RefusesWhatIsNoSvg) {
  EXPECT_THROW(inline_svg("gnuplot: out of paper", small_plot()), InternalError);
}

TEST(DrawPlot, IsASentenceWithoutGnuplot) {
  try {
    draw_plot(small_plot(), "/nowhere/gnuplot");
    FAIL() << "a program that is not there has drawn";
  } catch (const FailedError& error) {
    const std::string message = error.what();
    EXPECT_TRUE(has(message, "\"/nowhere/gnuplot\" does not start (No such file or directory)")) << message;
    EXPECT_TRUE(has(message, "install it"));
  }
}

TEST(DrawPlot, IsASentenceWhenGnuplotFails) {
  const RunFolder folder;
  const auto program = folder.path("gnuplot");
  write_file(program, "#!/bin/sh\necho 'unknown terminal' >&2\nexit 3\n");
  std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  try {
    draw_plot(small_plot(), program.string());
    FAIL() << "a failure was taken for a plot";
  } catch (const FailedError& error) {
    EXPECT_TRUE(has(error.what(), "exit status 3 and the words \"unknown terminal")) << error.what();
  }
}

TEST(DrawPlot, DrawsWithTheInstalledGnuplot) {
  if (std::system("command -v gnuplot >/dev/null 2>&1") != 0) GTEST_SKIP() << "gnuplot is not installed";
  const std::string svg = draw_plot(small_plot(), "gnuplot");
  EXPECT_TRUE(has(svg, "trained tokens (millions)"));
  EXPECT_TRUE(has(svg, "var(--series-1)"));
  EXPECT_TRUE(has(svg, "var(--plot-ink)"));
  EXPECT_FALSE(has(svg, "rgb(")) << "every colour is the page's";
}

TEST(SeriesStyle, TellsTwentySeriesApart) {
  std::vector<std::string> seen;
  for (int i = 0; i < 20; ++i) {
    const SeriesStyle style = series_style(i);
    EXPECT_LT(style.colour, kSeriesColours);
    const std::string look = fmt::format("{} {} {}", style.colour, style.dashes, style.gnuplot_point);
    EXPECT_EQ(std::count(seen.begin(), seen.end(), look), 0) << i;
    seen.push_back(look);
  }
}

}  // namespace
}  // namespace prism
