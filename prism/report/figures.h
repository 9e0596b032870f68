// The report's plots: what a comparison looks like against trained tokens.
//
//   for (const Plot& plot : {train_plot(comparison), valid_plot(comparison)}) page += draw_plot(plot, "gnuplot");
#pragma once

#include "prism/report/compare.h"
#include "prism/report/plot.h"

namespace prism {

/// Training loss of every run, smoothed; with few runs the recorded values faintly behind. No series: nothing recorded.
Plot train_plot(const Comparison& comparison);

/// Validation loss: mean over seeds, with a band of one standard deviation to either side. The scale is train_plot's.
Plot valid_plot(const Comparison& comparison);

/// Validation loss minus the baseline's at equal tokens. No series: nothing to compare.
Plot difference_plot(const Comparison& comparison);

/// Whether the first, steep part of the curves lies above the scale that train_plot and valid_plot share.
bool cuts_first_part(const Comparison& comparison);

}  // namespace prism
