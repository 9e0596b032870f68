// Plots as separate SVG files, for a document or a talk.
//
//   write_file("valid.svg", plot_file(valid_plot(comparison), {"uniform", "progressive"}, "gnuplot"));
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "prism/report/draw/plot.h"

namespace prism {

/// A plot that belongs to no comparison of runs.
struct LabelledPlot {
  Plot plot;
  std::vector<std::string> labels;  ///< of the series, by series number; any text
};

/// The drawing with its own background, in the page's colours, which follow dark mode, and a key to its series below.
/// It refers to nothing outside the file.
/// @param labels   labels of the series, by series number; any text.
/// @param gnuplot  see draw_plot().
/// @throws FailedError like draw_plot().
std::string plot_file(const Plot& plot, const std::vector<std::string>& labels, const std::string& gnuplot);

/// The name of the plot's file in a folder of figures.
std::string figure_file_name(const Plot& plot);

/// A drawing and the name of its file in a folder of figures.
struct FigureFile {
  std::string name, svg;
};

/// Writes drawings into a folder, which is made if there is none.
void write_figures(const std::vector<FigureFile>& files, const std::filesystem::path& folder);

/// A drawing with its own background, in the page's colours. @param style  additional CSS. @param description  any
/// text.
std::string svg_on_paper(double width, double height, const std::string& description, const std::string& style,
                         const std::string& drawing);

}  // namespace prism
