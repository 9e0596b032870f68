// A grid of shares drawn in shades: which blocks a mask keeps, where attention goes.
//
//   ShadeGrid grid{.rows = 16, .columns = 16, .shares = kept, .row_step = 128, .column_step = 128};
//   write_file("mask.svg", plot_file(grid_plot("mask", "Kept blocks", grid), {}, "gnuplot"));
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/report/draw/plot.h"

namespace prism {

/// Marks a cell that is not drawn, e.g. keys that no query sees.
inline constexpr double kNoShare = -1;

struct ShadeGrid {
  int64_t rows = 0, columns = 0;
  std::vector<double> shares = {};  ///< row-major, 0 to 1, drawn from pale to the ink's colour; or kNoShare
  double first_row = 0, row_step = 1, column_step = 1;  ///< values of the axes
  std::string row_label = "query", column_label = "key";
};

/// A grid of where attention goes, from cells of queries to cells of keys. Shares are relative to the largest of their
/// row, so that rows with a long past are visible too. Keys after the query are not drawn.
/// @param shares  row-major; the rows are the last of as many cells as there are columns.
/// @param tokens  tokens per cell.
ShadeGrid attention_grid(int64_t rows, int64_t columns, std::vector<double> shares, int64_t tokens);

/// Draws rows from top to bottom. Shares are rounded to tenths. 0 is drawn in a pale shade, to distinguish it from
/// cells that are not drawn.
/// @throws InternalError for shares that are not rows x columns.
Plot grid_plot(const std::string& id, const std::string& description, const ShadeGrid& grid);

}  // namespace prism
