#include "prism/report/draw/plot_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

constexpr size_t kMostStrongBands = 3;  // more bands are paler, so that lines remain visible through all of them
constexpr double kPale = kBandOpacity / 2;
constexpr double kMargin = 0.04;  // share of the scale, below and above

}  // namespace

PlotAxis axis_over(const std::string& label, Extent extent) {
  if (extent.low > extent.high) extent = {0, 1};
  // A scale of zero length cannot be drawn, and the numbers at a very short one are long.
  const double share = extent.low == extent.high ? 1e-3 : 1e-6;
  const double least = share * std::max({1.0, -extent.low, extent.high});
  const double margin = std::max(kMargin * (extent.high - extent.low), least);
  return {.label = label, .low = extent.low - margin, .high = extent.high + margin};
}

PlotAxis logarithmic_axis(const std::string& label, Extent extent) {
  if (extent.low > extent.high) extent = {0, 1};
  constexpr double kLeast = 0.4;  // a factor of 2.5: at least one of 1, 2, 5 times a power of ten is inside
  constexpr double kFewDecades = 2;
  const double length = std::max((1 + 2 * kMargin) * (extent.high - extent.low), kLeast);
  const double middle = (extent.low + extent.high) / 2;
  PlotAxis axis{.label = label, .low = middle - length / 2, .high = middle + length / 2};
  for (auto power = static_cast<int>(std::floor(axis.low)); power <= axis.high; ++power)
    for (const double factor : {1, 2, 5}) {
      const double position = power + std::log10(factor);
      const bool is_named = factor == 1 || length < kFewDecades;
      if (is_named && position >= axis.low && position <= axis.high)
        axis.ticks.push_back({position, factor * std::pow(10, power)});
    }
  return axis;
}

PlotAxis counting_axis(const std::string& what, double low, double high) {
  const auto [unit, name] = high >= 2e9   ? std::pair(1e9, " (billions)")
                            : high >= 2e6 ? std::pair(1e6, " (millions)")
                            : high >= 2e3 ? std::pair(1e3, " (thousands)")
                                          : std::pair(1.0, "");
  return {.label = what + name, .low = low, .high = high, .unit = unit};
}

PlotAxis training_axis(const Plot& plot, const std::string& counted) {
  double most = 1;
  for (const auto& series : plot.series) {
    for (const auto& point : series.points) most = std::max(most, point.x);
  }
  return counting_axis("trained " + counted, 0, most);
}

PlotAxis layer_axis(const Plot& plot) {
  double last = 0;
  for (const auto& series : plot.series) last = std::max(last, series.points.back().x);
  return {.label = "layer", .low = -0.5, .high = last + 0.5, .least_step = 1};
}

Interval deviation_bar(const Statistic& value) {
  return {value.mean - value.deviation, value.mean + value.deviation};
}

std::string trained_text(int64_t trained, const std::string& counted) {
  return fmt::format("{} {}: ", grouped(trained), counted);
}

void add_statistics(Plot& plot, size_t group, size_t groups, const std::vector<PlacedStatistic>& values) {
  if (values.empty()) return;
  const int series = static_cast<int>(group);
  PlotSeries band{PlotStyle::kBand, series, {}, groups > kMostStrongBands ? kPale : kBandOpacity};
  PlotSeries line{PlotStyle::kPoints, series, {}};
  for (const auto& [x, value, text] : values) {
    const PlotPoint point{.x = x, .y = value.mean, .y_bar = deviation_bar(value), .text = text};
    line.points.push_back(point);
    if (value.count > 1) band.points.push_back(point);
  }
  if (band.points.size() > 1) plot.series.insert(plot.series.begin(), std::move(band));
  plot.series.push_back(std::move(line));
}

}  // namespace prism
