// Plots for tests.
#pragma once

#include "prism/report/draw/plot.h"

namespace prism {

/// Two points with a band and a line.
inline Plot small_plot() {
  Plot plot{.id = "demo",
            .description = "A \"plot\" of <two> runs",
            .x = {.label = "trained tokens (millions)", .high = 4e6, .unit = 1e6},
            .y = {.label = "loss (nats per token)", .low = 3.5, .high = 5.25}};
  const PlotPoint first{.x = 1e6, .y = 4.0, .y_bar = {3.9, 4.1}}, last{.x = 4e6, .y = 3.75, .y_bar = {3.7, 3.8}};
  plot.series = {{PlotStyle::kBand, 1, {first, last}}, {PlotStyle::kPoints, 1, {first, last}}};
  return plot;
}

/// Two rows, the second with a hostile name.
inline Plot row_plot() {
  Plot plot{.id = "rows", .description = "rows", .x = {.label = "difference", .low = -1, .high = 1, .zero_line = true}};
  plot.rows = {{4, "top row"}, {5, "</text><script>alert(1)</script>\n'\"&"}};
  plot.series = {{PlotStyle::kBars, 4, {{.x = -0.5, .y = 0, .x_bar = {-0.75, -0.25}}}},
                 {PlotStyle::kBars, 5, {{.x = 0.5, .y = 1, .x_bar = {0, 1}, .y_bar = {1, 1}}}}};
  return plot;
}

}  // namespace prism
