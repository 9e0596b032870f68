// The cells of a comparison's tables.
//
//   table.rows.push_back({name_cell(comparison, i), spread_cell(curve.back().loss, kLossNumber)});
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "prism/report/compare/compare.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/tables/table.h"

namespace prism {

/// The group's name with its line and marker, the first cell of a row.
TableCell name_cell(const Comparison& comparison, size_t group);

/// Mean and deviation; kNoValue if there are no values.
TableCell spread_cell(const Statistic& value, NumberStyle style);

/// The ends of the 95% interval; kNoValue for fewer than two pairs.
TableCell interval_cell(const PairedDifference& gap, NumberStyle style);

/// Rows labelled with a number (tokens, layer), in ascending order, with one cell for each column of names.
class NumberedRows {
 public:
  explicit NumberedRows(size_t columns) : columns_(columns) {}

  /// A cell that is not set shows kNoValue.
  void set(int64_t number, size_t column, TableCell cell);

  /// @param most  if there are more rows, only some are kept, equally spaced and including the last.
  void append_to(Table& table, size_t most = std::numeric_limits<size_t>::max()) const;

 private:
  size_t columns_;
  std::map<int64_t, std::vector<TableCell>> rows_;
};

}  // namespace prism
