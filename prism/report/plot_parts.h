// What the report's plots are made of: axes that hold what is shown, and lines over seeds with their bands.
//
//   Extent extent;
//   add_statistics(plot, group, groups, values);
//   plot.x = token_axis(plot);
//   plot.y = axis_over("nats", extent);
#pragma once

#include <limits>
#include <string>
#include <vector>

#include "prism/core/statistics.h"
#include "prism/report/plot.h"

namespace prism {

/// Of a band, or of areas that lie over each other, together.
inline constexpr double kBandOpacity = 0.18;

/// Who reads the residual stream behind the last layer.
inline constexpr const char* kHeadReader = "LM head";

/// Grows to hold all that a plot shows.
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

/// The extent with a margin. An empty one gives 0 to 1.
PlotAxis axis_over(const std::string& label, Extent extent);

/// Counts in a unit that keeps the axis' numbers short.
PlotAxis counting_axis(const std::string& what, double low, double high);

/// From nothing to the most tokens of any point.
PlotAxis token_axis(const Plot& plot);

/// One place for each layer, counted from 0.
PlotAxis layer_axis(const Plot& plot);

/// One standard deviation to either side.
Interval deviation_bar(const Statistic& value);

/// "4,096 tokens: ".
std::string tokens_text(int64_t tokens);

/// A value over seeds, or of one, somewhere along the x axis.
struct PlacedStatistic {
  double x = 0;
  Statistic value;
  std::string text;
};

/// Points, and the band behind everything where there are deviations. Bands of more than three groups are paler.
void add_statistics(Plot& plot, size_t group, size_t groups, const std::vector<PlacedStatistic>& values);

}  // namespace prism
