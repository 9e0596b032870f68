// Diagnostics of the runs of a report: attention entropy, residual stream, dead units and updates.
//
//   for (const Plot& plot : diagnostics_plots(comparison)) page += draw_plot(plot, "gnuplot");
//   page += table_html(diagnostics_table(comparison));
#pragma once

#include <string>
#include <vector>

#include "prism/report/compare/compare.h"
#include "prism/report/draw/plot.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Plots over the training: mean entropy, the residual stream at the head, the median update and the time of a
/// step. Plots over layers, from the last diagnostics: entropy and residual stream. Lines are means over seeds, with a
/// band of one standard deviation to either side. Plots without recorded data are omitted.
std::vector<Plot> diagnostics_plots(const Comparison& comparison);

/// Title and caption of the plot with this id.
const char* diagnostics_title(const std::string& plot_id);
const char* diagnostics_caption(const std::string& plot_id);

/// A row for each layer of each group, from the last diagnostics of the group's first run that has any.
Table diagnostics_table(const Comparison& comparison);

/// Gradient, values and update of each parameter from the same diagnostics, one table for each of the first groups.
std::vector<Table> parameter_tables(const Comparison& comparison);

/// The warnings of all runs.
Table warnings_table(const Comparison& comparison);

}  // namespace prism
