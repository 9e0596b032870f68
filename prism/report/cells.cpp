#include "prism/report/cells.h"

#include "prism/report/number_text.h"

namespace prism {

TableCell name_cell(const Comparison& comparison, size_t group) {
  return {comparison.groups[group].label, "", false, static_cast<int>(group)};
}

TableCell loss_cell(const Statistic& loss) {
  if (loss.count == 0) return {kNoValue};
  return {loss_text(loss.mean), loss.count > 1 ? loss_text(loss.deviation) : ""};
}

TableCell difference_cell(const PairedDifference& gap) {
  if (gap.difference.count == 0) return {kNoValue};
  return {difference_text(gap.difference.mean), gap.difference.count > 1 ? loss_text(gap.difference.deviation) : ""};
}

TableCell interval_cell(const PairedDifference& gap) {
  return {gap.has_interval() ? interval_text(gap.interval) : kNoValue};
}

TableCell whole_cell(const Statistic& value) {
  if (value.count == 0) return {kNoValue};
  return {grouped(value.mean), value.count > 1 ? grouped(value.deviation) : ""};
}

}  // namespace prism
