// What a comparison puts into the cells of its tables.
//
//   table.rows.push_back({name_cell(comparison, i), spread_cell(curve.back().loss, kLossNumber)});
#pragma once

#include <limits>
#include <map>
#include <vector>

#include "prism/report/compare.h"
#include "prism/report/number_text.h"
#include "prism/report/table.h"

namespace prism {

/// The group's name with its line and marker: what opens a row.
TableCell name_cell(const Comparison& comparison, size_t group);

/// Mean and deviation. kNoValue: of nothing.
TableCell spread_cell(const Statistic& value, NumberStyle style);

/// The ends of the 95% interval. kNoValue below two pairs.
TableCell interval_cell(const PairedDifference& gap, NumberStyle style);

/// Rows named by a number (tokens, layer), ascending, with a cell for each column of names.
class NumberedRows {
 public:
  explicit NumberedRows(size_t columns) : columns_(columns) {}

  /// A cell that is never set holds kNoValue.
  void set(int64_t number, size_t column, TableCell cell);

  /// @param most  of more rows, some are left out at equal distances; the last one stays.
  void append_to(Table& table, size_t most = std::numeric_limits<size_t>::max()) const;

 private:
  size_t columns_;
  std::map<int64_t, std::vector<TableCell>> rows_;
};

}  // namespace prism
