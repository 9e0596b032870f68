// The appearance of the n-th series, in plots and next to its name: a colour, a dash pattern and a marker, so that two
// lines can be told apart without colour.
#pragma once

#include <string>

namespace prism {

/// Number of colours in the page's style sheet, --series-0 and so on. Further series reuse them with other dashes and
/// markers.
inline constexpr int kSeriesColours = 10;

struct SeriesStyle {
  int colour = 0;                ///< 0 .. kSeriesColours - 1
  const char* dashes = "";       ///< "6,3": pixels drawn, pixels left out; "": solid
  int gnuplot_point = 7;         ///< gnuplot's point type, as drawn by its SVG terminal
  const char* marker_path = "";  ///< the same shape as an SVG path around the origin, about 6 pixels wide
};

/// @param series  counted from 0; any number is valid.
SeriesStyle series_style(int series);

/// The key to a series: its line and marker as an inline SVG, 26 x 10 pixels, hidden from screen readers.
std::string series_key_svg(int series);

}  // namespace prism
