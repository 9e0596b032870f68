// gnuplot's SVG made fit to stand in a page: its colours become the page's variables, so that it follows dark mode, and
// texts of runs, which gnuplot never sees, are put in.
//
//   page += inline_svg(run_gnuplot("gnuplot", gnuplot_script(plot)), plot);
#pragma once

#include <string>
#include <string_view>

#include "prism/report/plot.h"

namespace prism {

/// What is drawn in a colour of the page that belongs to no series: --plot-ink, --plot-grid, --plot-zero.
enum class PlotRole { kInk, kGrid, kZero };

/// "#rrggbb" for gnuplot that stands for a colour of the page until inline_svg() puts the variable in its place.
std::string role_colour(PlotRole role);
std::string series_colour(int colour);
std::string faint_colour(int colour);

/// No size, ids or links of its own, colours by variable, a description, the rows' labels; all that belongs to a series
/// has it as data-series, so that the page's script can hide it.
/// @throws InternalError if it is no SVG.
std::string inline_svg(std::string_view svg, const Plot& plot);

}  // namespace prism
