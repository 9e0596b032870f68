// Tables of the models, recipes and machines: head schedules, recipe fields, hardware.
//
//   page += table_html(machine_table(comparison));
#pragma once

#include "prism/report/compare/compare.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Heads times width, one row for each layer, one column for each group. No rows if no group records them.
Table schedule_table(const Comparison& comparison);

/// The recipe fields in which the groups differ. Equal consecutive list elements share a row. No rows if none differ.
Table recipe_table(const Comparison& comparison);

/// CPU, threads, number format, share of the CPU's limit, memory.
Table machine_table(const Comparison& comparison);

}  // namespace prism
