// A plot as an SVG file of its own, for a document or a talk.
//
//   write_file("valid.svg", plot_file(valid_plot(comparison), {"uniform", "progressive"}, "gnuplot"));
#pragma once

#include <string>
#include <vector>

#include "prism/report/plot.h"

namespace prism {

/// The drawing on paper of its own, in the page's colours, which follow dark mode, with a key to its series below;
/// nothing outside the file is referred to.
/// @param labels   of the series, by their numbers; any text.
/// @param gnuplot  as draw_plot().
/// @throws FailedError as draw_plot().
std::string plot_file(const Plot& plot, const std::vector<std::string>& labels, const std::string& gnuplot);

/// A drawing on paper of its own, in the page's colours. @param style  CSS besides. @param description  any text.
std::string svg_on_paper(double width, double height, const std::string& description, const std::string& style,
                         const std::string& drawing);

}  // namespace prism
