#include "prism/report/draw/plot_svg.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "tests/report/has.h"
#include "tests/report/made_plots.h"

namespace prism {
namespace {

/// The output of gnuplot 5.4, reduced to one element of each kind.
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
      svg.starts_with("<svg class=\"plot\" data-plot=\"demo\" viewBox=\"0 0 480 320\" role=\"img\" "
                      "aria-label=\"A &quot;plot&quot; of &lt;two&gt; runs\">"));
  EXPECT_FALSE(has(svg, "<title>"));
  EXPECT_FALSE(has(svg, "<desc>"));
  EXPECT_FALSE(has(svg, "<filter"));
  EXPECT_FALSE(has(svg, " width=\"480\""));
  EXPECT_TRUE(has(svg, "<use href='#demo-point5' id='demo-point6'"));
  EXPECT_TRUE(has(svg, "id=\"demo-plot_1\" data-series=\"1\""));
}

TEST(InlineSvg, RefusesWhatIsNoSvg) {
  EXPECT_THROW(inline_svg("gnuplot: out of paper", small_plot()), InternalError);
}

TEST(InlineSvg, PutsTheAxesLabelsInItself) {
  const std::string svg = inline_svg(kSvg, small_plot());
  EXPECT_TRUE(has(svg, ">trained tokens (millions)</text>"));
  EXPECT_TRUE(has(svg, "rotate(-90)\">loss (nats per token)</text>"));
}

TEST(InlineSvg, WritesRowsLabelsAsTextAndNothingElse) {
  const std::string svg = inline_svg(kSvg, row_plot());
  EXPECT_TRUE(has(svg, "<text class=\"row\" data-series=\"4\" x=")) << svg;
  EXPECT_TRUE(has(svg, ">top row</text>"));
  EXPECT_TRUE(has(svg, ">&lt;/text&gt;&lt;script&gt;alert(1)&lt;/script&gt; &#39;&quot;&amp;</text>"));
  EXPECT_FALSE(has(svg, "<script"));
  EXPECT_FALSE(has(svg, "rotate(-90)")) << "rows have no y axis";
}

TEST(RoleColour, StandsForAVariableOfThePage) {
  EXPECT_EQ(role_colour(PlotRole::kGrid), "#010101");
  EXPECT_EQ(series_colour(4), "#010204");
  EXPECT_EQ(faint_colour(2), "#010302");
}

}  // namespace
}  // namespace prism
