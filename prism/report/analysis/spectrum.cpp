#include "prism/report/analysis/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "prism/core/statistics.h"
#include "prism/report/analysis/lines.h"

namespace prism {
namespace {

/// One line over the pairs. @param field  of a pair; its mean over the heads is drawn.
PlotSeries line_over_pairs(const std::vector<Json>& heads, int series, const char* field) {
  std::map<int64_t, std::vector<double>> values;
  for (const auto& head : heads)
    for (const auto& pair : head.at("pairs"))
      values[pair.at("pair").get<int64_t>()].push_back(number_of(pair.at(field)));
  PlotSeries line{.style = PlotStyle::kPoints, .series = series, .points = {}};
  for (const auto& [pair, of_heads] : values)
    line.points.push_back({.x = static_cast<double>(2 * pair), .y = statistic(of_heads).mean});
  return line;
}

PlotAxis pair_axis(const Json& head) {
  return {.label = "2 j", .low = 0, .high = 2.0 * static_cast<double>(head.at("pairs").size())};
}

}  // namespace

Plot gain_plot(const Json& head) {
  Plot plot{.id = "gain",
            .description = fmt::format("Share of each pair's length that the mean over {} tokens keeps",
                                       head.at("block_size").get<int64_t>()),
            .x = pair_axis(head),
            .y = {.label = "lambda", .low = 0, .high = 1.05}};
  plot.series.push_back(line_over_pairs({head}, 0, "gain"));
  return plot;
}

Plot energy_plot(const std::vector<Json>& heads, const std::string& where) {
  Plot plot{.id = "energy",
            .description = "Root mean square of each pair, for tokens and for means over blocks, " + where,
            .x = pair_axis(heads.front()),
            .y = {.label = "root mean square", .low = 0, .high = 0}};
  int series = 0;
  for (const char* field : {"q", "q_pooled", "k", "k_pooled"}) {
    plot.series.push_back(line_over_pairs(heads, series++, field));
    for (const auto& point : plot.series.back().points) plot.y.high = std::max(plot.y.high, 1.05 * point.y);
  }
  if (plot.y.high == 0) plot.y.high = 1;  // a head without any energy
  return plot;
}

}  // namespace prism
