// Adapts gnuplot's SVG for a page: replaces colours by the page's variables, so that it follows dark mode, and inserts
// the texts of runs, which gnuplot never sees.
//
//   page += inline_svg(run_gnuplot("gnuplot", gnuplot_script(plot)), plot);
#pragma once

#include <string>
#include <string_view>

#include "prism/report/draw/plot.h"

namespace prism {

/// Elements drawn in a page colour that belongs to no series: --plot-ink, --plot-grid, --plot-zero.
enum class PlotRole { kInk, kGrid, kZero };

/// "#rrggbb" that gnuplot uses as a placeholder for a page colour. inline_svg() replaces it with the variable.
std::string role_colour(PlotRole role);
std::string series_colour(int colour);
std::string faint_colour(int colour);

/// Removes size, ids and links, replaces colours by variables, and adds a description and the rows' labels. Every
/// element of a series has the attribute data-series, so that the page's script can hide it.
/// @throws InternalError if `svg` is not an SVG.
std::string inline_svg(std::string_view svg, const Plot& plot);

}  // namespace prism
