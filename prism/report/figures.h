// The report's plots: what a comparison looks like.
//
//   for (const Plot& plot : report_plots(comparison)) page += draw_plot(plot, "gnuplot");
//
// A plot without series has nothing to show.
#pragma once

#include "prism/report/compare.h"
#include "prism/report/plot.h"

namespace prism {

/// Training loss against trained tokens, smoothed: every run, or with many of them the mean of each group's; with few,
/// the recorded values faintly behind.
Plot train_plot(const Comparison& comparison);

/// Validation loss: mean over seeds, with a band of one standard deviation to either side. The scale is train_plot's.
Plot valid_plot(const Comparison& comparison);

/// Validation loss minus the baseline's at equal tokens: mean of the differences seed by seed, with such a band.
Plot difference_plot(const Comparison& comparison);

/// The final difference of each group with its 95% interval and its single seeds, a row for each: a forest plot.
Plot forest_plot(const Comparison& comparison);

/// Final validation loss against training tokens/s, means with bars of one standard deviation to either side, the
/// groups on the Pareto front joined. Below two groups there is nothing to show.
Plot pareto_plot(const Comparison& comparison);

/// Mean attention distance of each layer, with a band of one standard deviation to either side.
Plot distance_plot(const Comparison& comparison);

/// The same minus the baseline's; layers are shaded in which heads are not as many as the baseline's, the darker the
/// more groups.
Plot distance_difference_plot(const Comparison& comparison);

/// All of the above that have something to show, in the report's order.
std::vector<Plot> report_plots(const Comparison& comparison);

/// Whether the first, steep part of the curves lies above the scale that train_plot and valid_plot share.
bool cuts_first_part(const Comparison& comparison);

/// Whether train_plot shows means over seeds, because single runs would be too many.
bool shows_mean_training(const Comparison& comparison);

}  // namespace prism
