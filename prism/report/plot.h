// A plot as an inline SVG: gnuplot draws it, then it is made fit for a page (plot_svg.h).
//
//   Plot plot{.id = "rate", .description = "Loss against rate", .x = {"tokens/s", 0, 4000}, .y = {"loss", 3, 5}};
//   plot.series.push_back({PlotStyle::kLine, 0, {{1000, 4.5}, {3000, 3.5}}});
//   page += draw_plot(plot, "gnuplot");
#pragma once

#include <string>
#include <vector>

#include "prism/core/statistics.h"

namespace prism {

enum class PlotStyle {
  kFaint,   ///< a thin and pale line: the values as recorded
  kLine,    ///< a solid and strong one
  kPoints,  ///< markers joined by the series' dashes
  kBand,    ///< the area between the ends of the points' y bars
  kBars,    ///< markers with bars in both directions
  kDots,    ///< small and pale: single values beside their mean
  kBoxes,   ///< areas of the ink's colour, from bar end to bar end in both directions
  kGuide,   ///< a thin dashed line of the ink's colour, which belongs to no series
};

struct PlotPoint {
  double x = 0, y = 0;
  Interval x_bar = {}, y_bar = {};  ///< what kBand, kBars and kBoxes reach over; a bar without length is not drawn
  std::string text = {};            ///< the point's values in words, for who points at it; empty: it is passed over
};

inline constexpr int kNoSeries = -1;

struct PlotSeries {
  PlotStyle style = PlotStyle::kLine;
  int series = kNoSeries;         ///< which colour, dashes and marker (series.h)
  std::vector<PlotPoint> points;  ///< at least one
  double opacity = 0.18;          ///< of a band or of boxes
};

struct PlotAxis {
  std::string label = {};    ///< with the unit; our words, never a run's
  double low = 0, high = 1;  ///< at the left and the right, or the bottom and the top: low may be the larger
  double unit = 1;           ///< what the numbers at the axis count in
  double least_step = 0;     ///< the numbers are at least so far apart: 1 for what is counted
  bool zero_line = false;    ///< zero is marked across the plot
};

/// A row of a plot that compares named things: it stands above the marks whose y is its place in the list.
struct PlotRow {
  int series = kNoSeries;
  std::string label;  ///< any text
};

struct Plot {
  std::string id;           ///< unique on the page: letters, digits, hyphens
  std::string description;  ///< what a screen reader says; any text
  PlotAxis x = {}, y = {};
  std::vector<PlotRow> rows = {};  ///< if there are any, they take the place of the y axis
  std::vector<PlotSeries> series = {};
  bool square = false;  ///< the area that the axes enclose
};

/// Where things lie in the plot's SVG, in its pixels.
struct PlotFrame {
  double width = 0, height = 0;                     ///< of the SVG
  double left = 0, right = 0, top = 0, bottom = 0;  ///< of the area that the axes enclose
};

PlotFrame plot_frame(const Plot& plot);

struct Pixel {
  double x = 0, y = 0;
};

/// Where a point of the axes is drawn.
Pixel pixel_of(const Plot& plot, double x, double y);

/// What gnuplot is asked to draw; numbers only, no text from a run.
std::string gnuplot_script(const Plot& plot);

/// Draws the plot. @param gnuplot  the program: a name looked up in PATH, or a path.
/// @throws FailedError as run_gnuplot().
std::string draw_plot(const Plot& plot, const std::string& gnuplot);

}  // namespace prism
