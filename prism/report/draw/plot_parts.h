// Building blocks of the report's plots: axes that fit the data, and lines over seeds with their bands.
//
//   Extent extent;
//   add_statistics(plot, group, groups, values);
//   plot.x = training_axis(plot, "tokens");
//   plot.y = axis_over("nats", extent);
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/report/draw/plot.h"

namespace prism {

/// Opacity of a band, or of several overlapping areas together.
inline constexpr double kBandOpacity = 0.18;

/// The name of the reader of the residual stream after the last layer.
inline constexpr const char* kHeadReader = "LM head";

/// A range that grows to include all values of a plot.
struct Extent {
  double low = std::numeric_limits<double>::max(), high = std::numeric_limits<double>::lowest();

  void add(double value) {
    low = std::min(low, value);
    high = std::max(high, value);
  }
  void add(const Interval& bar) {
    add(bar.low);
    add(bar.high);
  }
};

/// An axis over the extent with a margin; from 0 to 1 if the extent is empty.
PlotAxis axis_over(const std::string& label, Extent extent);

/// The same for positions that are decimal logarithms, with the numbers themselves at powers of ten, and at 2 and 5
/// times these where the axis is short.
PlotAxis logarithmic_axis(const std::string& label, Extent extent);

/// A unit for counts that keeps the numbers at the axis short.
PlotAxis counting_axis(const std::string& what, double low, double high);

/// An axis from zero to the largest x of any point. @param counted  what x counts: "tokens", "examples".
PlotAxis training_axis(const Plot& plot, const std::string& counted);

/// An axis with one position for each layer, counted from 0.
PlotAxis layer_axis(const Plot& plot);

/// An interval of one standard deviation to either side.
Interval deviation_bar(const Statistic& value);

/// "4,096 tokens: ".
std::string trained_text(int64_t trained, const std::string& counted);

/// A value, possibly over seeds, at a position on the x axis.
struct PlacedStatistic {
  double x = 0;
  Statistic value;
  std::string text;
};

/// Adds points, and a band in the background if there are deviations. If there are more than three groups, bands are
/// paler.
void add_statistics(Plot& plot, size_t group, size_t groups, const std::vector<PlacedStatistic>& values);

}  // namespace prism
