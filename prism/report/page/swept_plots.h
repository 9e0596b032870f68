// The plot of a sweep over a number, such as the learning rate.
#pragma once

#include <vector>

#include "prism/report/compare/compare.h"
#include "prism/report/draw/plot_file.h"

namespace prism {

/// Final value of the metric over the number that a sweep's grid varies (swept_field()), a line for each arm, with a
/// band of one standard deviation to either side. Values that span more than a factor of four, all positive, are spaced
/// by their logarithms. No plot if nothing is swept.
std::vector<LabelledPlot> swept_plots(const Comparison& comparison);

}  // namespace prism
