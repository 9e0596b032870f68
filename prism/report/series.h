// How the n-th thing compared looks, in plots and beside its name: a colour, a dash pattern and a marker, so that
// neither colour vision nor colour print is needed to tell two lines apart.
#pragma once

#include <string>

namespace prism {

/// Colours the page's style sheet defines, as --series-0 and so on; further series start again with other dashes.
inline constexpr int kSeriesColours = 10;

struct SeriesStyle {
  int colour = 0;                ///< 0 .. kSeriesColours - 1
  const char* dashes = "";       ///< "6,3": pixels drawn, pixels left out; "": solid
  int gnuplot_point = 7;         ///< gnuplot's point type, as drawn by its SVG terminal
  const char* marker_path = "";  ///< the same shape as an SVG path around the origin, about 6 pixels wide
};

/// @param series  0 is the first; any number is answered.
SeriesStyle series_style(int series);

/// The key to a series: its line and marker as an inline SVG, 26 x 10 pixels, hidden from screen readers.
std::string series_key_svg(int series);

}  // namespace prism
