#include "prism/report/draw/grid_plot.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr int kShades = 10;  // plus one for 0

int shade_of(double share) {
  if (!(share > 0)) return 0;  // NaN too
  return std::clamp(static_cast<int>(std::ceil(share * kShades)), 1, kShades);
}

double opacity_of(int shade) {
  return shade == 0 ? 0.06 : 0.06 + 0.84 * shade / kShades;
}

}  // namespace

ShadeGrid attention_grid(int64_t rows, int64_t columns, std::vector<double> shares, int64_t tokens) {
  PRISM_ASSERT(rows <= columns && static_cast<int64_t>(shares.size()) == rows * columns, "attention_grid",
               "{} shares for {} x {}", shares.size(), rows, columns);
  for (int64_t row = 0; row < rows; ++row) {
    const auto first = shares.begin() + row * columns, end = first + columns;
    const auto after_query = first + (columns - rows + row + 1);
    const double most = *std::max_element(first, end);
    std::for_each(first, after_query, [&](double& share) { share /= most; });
    std::fill(after_query, end, kNoShare);
  }
  const auto size = static_cast<double>(tokens);
  return {.rows = rows,
          .columns = columns,
          .shares = std::move(shares),
          .first_row = static_cast<double>(columns - rows) * size,
          .row_step = size,
          .column_step = size,
          .row_label = "query, tokens",
          .column_label = "key, tokens"};
}

Plot grid_plot(const std::string& id, const std::string& description, const ShadeGrid& grid) {
  PRISM_ASSERT(
      grid.rows > 0 && grid.columns > 0 && static_cast<int64_t>(grid.shares.size()) == grid.rows * grid.columns,
      "grid_plot", "{} shares for {} x {}", grid.shares.size(), grid.rows, grid.columns);
  const double top = grid.first_row, bottom = top + static_cast<double>(grid.rows) * grid.row_step;
  const double right = static_cast<double>(grid.columns) * grid.column_step;
  Plot plot{.id = id,
            .description = description,
            .x = {.label = grid.column_label, .low = 0, .high = right},
            .y = {.label = grid.row_label, .low = bottom, .high = top},
            .square = true};
  std::vector<PlotSeries> shades;
  for (int shade = 0; shade <= kShades; ++shade)
    shades.push_back({.style = PlotStyle::kBoxes, .points = {}, .opacity = opacity_of(shade)});
  for (int64_t row = 0; row < grid.rows; ++row) {
    const double* shares = grid.shares.data() + row * grid.columns;
    const Interval y = {top + static_cast<double>(row) * grid.row_step,
                        top + static_cast<double>(row + 1) * grid.row_step};
    for (int64_t first = 0, end = 0; first < grid.columns; first = end) {
      // Adjacent cells of the same shade form one box.
      const int shade = shade_of(shares[first]);
      const auto is_alike = [&](int64_t column) {
        return shares[column] == kNoShare ? shares[first] == kNoShare
                                          : shares[first] != kNoShare && shade_of(shares[column]) == shade;
      };
      for (end = first + 1; end < grid.columns && is_alike(end);) ++end;
      if (shares[first] == kNoShare) continue;
      const Interval x = {static_cast<double>(first) * grid.column_step, static_cast<double>(end) * grid.column_step};
      shades[static_cast<size_t>(shade)].points.push_back({(x.low + x.high) / 2, (y.low + y.high) / 2, x, y});
    }
  }
  for (auto& shade : shades)
    if (!shade.points.empty()) plot.series.push_back(std::move(shade));
  return plot;
}

}  // namespace prism
