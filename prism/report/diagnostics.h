// How training looked from inside: attention entropy, residual stream, dead units and updates of the runs of a report.
//
//   for (const Plot& plot : diagnostics_plots(comparison)) page += draw_plot(plot, "gnuplot");
//   page += table_html(diagnostics_table(comparison));
#pragma once

#include <string>
#include <vector>

#include "prism/report/compare.h"
#include "prism/report/plot.h"
#include "prism/report/table.h"

namespace prism {

/// Over tokens: mean entropy, the residual stream that the head reads, the median update and a step's time; by layers,
/// as last recorded: entropy and residual stream. Means over seeds, with a band of one standard deviation to either
/// side. Only those for which runs recorded something.
std::vector<Plot> diagnostics_plots(const Comparison& comparison);

/// What the plot of such an id shows, in a few words and in a sentence.
const char* diagnostics_title(const std::string& plot_id);
const char* diagnostics_caption(const std::string& plot_id);

/// A row for each layer of each group, of the last diagnostics of its first run that has some.
Table diagnostics_table(const Comparison& comparison);

/// Gradient, values and update of each parameter, of the same diagnostics, a table for each of the first groups.
std::vector<Table> parameter_tables(const Comparison& comparison);

/// What runs warned of.
Table warnings_table(const Comparison& comparison);

}  // namespace prism
