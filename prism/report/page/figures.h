// The plots of a comparison for the report.
//
//   for (const Plot& plot : report_plots(comparison)) page += draw_plot(plot, "gnuplot");
//
// A plot without series has nothing to show.
#pragma once

#include <string>
#include <vector>

#include "prism/report/compare/compare.h"
#include "prism/report/draw/plot.h"

namespace prism {

/// Training loss against trained tokens or examples, smoothed: every run, or the mean of each group if there are many.
/// If there are few, the recorded values are drawn faintly as well.
Plot train_plot(const Comparison& comparison);

/// Validation loss: mean over seeds, with a band of one standard deviation to either side.
Plot valid_plot(const Comparison& comparison);

/// Validation loss minus the baseline's at equal tokens: mean of the differences paired by seed, with the same band.
Plot difference_plot(const Comparison& comparison);

/// Share of heads s against trained tokens or examples, mean over the layers of models with head budgets: a line for
/// training, points for validation; means over seeds.
Plot share_plot(const Comparison& comparison);

/// Forest plot: a row for each group with its final difference, the 95% interval and the values of single seeds.
Plot forest_plot(const Comparison& comparison);

/// Final validation loss against training tokens/s: means with bars of one standard deviation to either side. Groups on
/// the Pareto front are connected. Empty for fewer than two groups.
Plot pareto_plot(const Comparison& comparison);

/// Mean attention distance of each layer, with a band of one standard deviation to either side.
Plot distance_plot(const Comparison& comparison);

/// Mean attention distance minus the baseline's. Layers whose number of heads differs from the baseline's are shaded,
/// darker for more groups.
Plot distance_difference_plot(const Comparison& comparison);

/// All plots above that are not empty, in the report's order.
std::vector<Plot> report_plots(const Comparison& comparison);

/// "validation loss (nats per token)": what is shown of the metric, with its unit if it has one.
std::string metric_label(const Comparison& comparison, const std::string& what);

enum class Losses { training, validation };

/// Returns true if the first, steep part of the curves lies above the scale of train_plot() or valid_plot().
bool cuts_first_part(const Comparison& comparison, Losses losses);

/// Returns true if train_plot() shows means over seeds because there are too many runs.
bool shows_mean_training(const Comparison& comparison);

}  // namespace prism
