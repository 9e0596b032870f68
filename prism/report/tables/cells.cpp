#include "prism/report/tables/cells.h"

namespace prism {

TableCell name_cell(const Comparison& comparison, size_t group) {
  return {comparison.groups[group].label, "", false, static_cast<int>(group)};
}

TableCell spread_cell(const Statistic& value, NumberStyle style) {
  if (value.count == 0) return {kNoValue};
  return {number_text(value.mean, style), value.count > 1 ? number_text(value.deviation, {style.decimals}) : ""};
}

TableCell interval_cell(const PairedDifference& gap, NumberStyle style) {
  return {gap.has_interval() ? interval_text(gap.interval, style) : kNoValue};
}

void NumberedRows::set(int64_t number, size_t column, TableCell cell) {
  rows_.try_emplace(number, columns_, TableCell{kNoValue}).first->second[column] = std::move(cell);
}

void NumberedRows::append_to(Table& table, size_t most) const {
  const size_t stride = rows_.empty() ? 1 : (rows_.size() - 1) / most + 1;
  size_t left = rows_.size();
  for (const auto& [number, cells] : rows_) {
    // Counts from the end, so that the last row is kept.
    if (--left % stride != 0) continue;
    auto& row = table.rows.emplace_back();
    row.push_back({grouped(number)});
    row.insert(row.end(), cells.begin(), cells.end());
  }
}

}  // namespace prism
