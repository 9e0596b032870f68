// A plot as an inline SVG: gnuplot draws it, then its colours become the page's variables, so that it follows dark
// mode.
//
//   Plot plot{"train", "loss (nats per token)", "Training loss of two runs", {}, {}, false};
//   plot.series.push_back({PlotStyle::kLine, 0, points});
//   page += draw_plot(plot, "gnuplot");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace prism {

enum class PlotStyle {
  kFaint,   ///< thin and pale: the values as recorded
  kLine,    ///< solid and strong
  kPoints,  ///< markers joined by the series' dashes
  kBand,    ///< the area from low to high
};

struct PlotPoint {
  int64_t tokens = 0;
  double value = 0;
  double low = 0, high = 0;  ///< of a band
};

struct PlotSeries {
  PlotStyle style = PlotStyle::kLine;
  int series = 0;  ///< which colour, dashes and marker (series.h)
  std::vector<PlotPoint> points;
};

/// Something against trained tokens.
struct Plot {
  std::string id;           ///< unique on the page: letters, digits, hyphens
  std::string y_label;      ///< with the unit
  std::string description;  ///< what a screen reader says
  std::vector<PlotSeries> series;
  std::optional<std::pair<double, double>> y_range;  ///< absent: gnuplot's choice
  bool zero_line = false;
};

/// What gnuplot is asked to draw; numbers only, no text from a run.
std::string gnuplot_script(const Plot& plot);

/// gnuplot's SVG made fit to stand in a page: no size, ids or links of its own, colours by variable, with a
/// description.
/// @throws InternalError if it is no SVG.
std::string inline_svg(std::string_view svg, const Plot& plot);

/// Draws the plot.
/// @param gnuplot  the program: a name looked up in PATH, or a path.
/// @throws FailedError if the program is missing or fails: a sentence that can stand in the plot's place.
std::string draw_plot(const Plot& plot, const std::string& gnuplot);

}  // namespace prism
