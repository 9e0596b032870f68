// Table and plots of `prism analyse spectrum --json`, which has a line for each head.
//
//   page += table_html(spectrum_table(group));
//   page += draw_plot(energy_plot(heads, "mean over the heads of layer 3"), "gnuplot");
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/lines.h"
#include "prism/report/draw/grid_plot.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Checks that a line has all fields that are shown. @throws InputError or Json::exception if not.
void check_spectrum(const Json& line, const std::string& place);

/// The input of a line, with the size of its blocks: spectra with other blocks are another group.
std::string spectrum_reading(const Json& line);

/// Root mean squares in the zones of each head, for tokens and for means over blocks.
Table spectrum_table(const AnalysisGroup& group);

/// The gain of the pairs of all layers, and the energy of the pairs of each layer, mean over its heads.
std::vector<LabelledPlot> spectrum_plots(const AnalysisGroup& group);

/// The share of each rotary pair's length that the mean over a block keeps: a series for each distinct list of gains,
/// labelled with its layers.
/// @param heads  at least one.
LabelledPlot gain_plot(const std::vector<Json>& heads);

/// Root mean squares of each rotary pair, for tokens and for means over blocks; mean over the heads.
/// @param heads  of one layer, at least one. @param where  which heads these are, for the description.
LabelledPlot energy_plot(const std::vector<Json>& heads, const std::string& where);

/// What some features of a head attend to.
struct BandGrid {
  std::string band;
  ShadeGrid grid;
};

/// Pictures of one head: gain.svg and energy.svg, and a map of where each band attends to, named after the band.
/// @param line  of a head with rotary pairs. @param gnuplot  see draw_plot().
std::vector<FigureFile> head_figures(const Json& line, const std::vector<BandGrid>& grids, const std::string& gnuplot);

}  // namespace prism
