// What a comparison puts into the cells of its tables.
//
//   table.rows.push_back({name_cell(comparison, i), loss_cell(curve.back().loss)});
#pragma once

#include "prism/report/compare.h"
#include "prism/report/table.h"

namespace prism {

/// The group's name with its line and marker: what opens a row.
TableCell name_cell(const Comparison& comparison, size_t group);

/// Mean and deviation in nats per token. kNoValue: of nothing.
TableCell loss_cell(const Statistic& loss);

/// Likewise of a difference, with its sign.
TableCell difference_cell(const PairedDifference& gap);

/// The ends of the 95% interval. kNoValue below two pairs.
TableCell interval_cell(const PairedDifference& gap);

/// Mean and deviation as whole numbers. kNoValue: of nothing.
TableCell whole_cell(const Statistic& value);

}  // namespace prism
