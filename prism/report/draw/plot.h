// Plots as inline SVG: gnuplot draws them, then plot_svg.h adapts them to the page.
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
  kFaint,   ///< a thin pale line: values as recorded
  kLine,    ///< a strong solid line
  kPoints,  ///< markers connected by a line with the series' dashes
  kBand,    ///< the area between the ends of the points' y bars
  kBars,    ///< markers with bars in both directions
  kDots,    ///< small pale dots: single values next to their mean
  kBoxes,   ///< areas in the ink's colour between the bar ends in both directions
  kGuide,   ///< a thin dashed line in the ink's colour that belongs to no series
};

struct PlotPoint {
  double x = 0, y = 0;
  Interval x_bar = {}, y_bar = {};  ///< the extent for kBand, kBars and kBoxes; a bar of zero length is not drawn
  std::string text = {};            ///< the point's values as text, shown on hover; empty: the point is not selectable
};

inline constexpr int kNoSeries = -1;

struct PlotSeries {
  PlotStyle style = PlotStyle::kLine;
  int series = kNoSeries;         ///< determines colour, dashes and marker (series.h)
  std::vector<PlotPoint> points;  ///< at least one
  double opacity = 0.18;          ///< of a band or of boxes
};

/// A number at an axis.
struct AxisTick {
  double position = 0, number = 0;
};

struct PlotAxis {
  std::string label = {};            ///< with the unit; a fixed text, never from a run
  double low = 0, high = 1;          ///< at the left and right, or bottom and top; low may be larger than high
  double unit = 1;                   ///< the numbers at the axis are divided by it
  double least_step = 0;             ///< minimum step between the numbers at the axis: 1 for counts
  bool zero_line = false;            ///< draws a line across the plot at zero
  std::vector<AxisTick> ticks = {};  ///< instead of evenly spaced numbers, e.g. where positions are logarithms
};

/// A labelled row of a plot that compares named things. Its marks have its index as y; its label is above them.
struct PlotRow {
  int series = kNoSeries;
  std::string label;  ///< any text
};

struct Plot {
  std::string id;           ///< unique on the page: letters, digits, hyphens
  std::string description;  ///< text for screen readers; any text
  PlotAxis x = {}, y = {};
  std::vector<PlotRow> rows = {};  ///< replace the y axis if not empty
  std::vector<PlotSeries> series = {};
  bool square = false;  ///< makes the area inside the axes square
};

/// Positions in the plot's SVG, in pixels.
struct PlotFrame {
  double width = 0, height = 0;                     ///< of the SVG
  double left = 0, right = 0, top = 0, bottom = 0;  ///< of the area inside the axes
};

PlotFrame plot_frame(const Plot& plot);

struct Pixel {
  double x = 0, y = 0;
};

/// The pixel at which a point is drawn.
Pixel pixel_of(const Plot& plot, double x, double y);

/// The gnuplot script. It contains only numbers and fixed text, no text from a run.
std::string gnuplot_script(const Plot& plot);

/// Draws the plot. @param gnuplot  the program: a name looked up in PATH, or a path.
/// @throws FailedError like run_gnuplot().
std::string draw_plot(const Plot& plot, const std::string& gnuplot);

}  // namespace prism
