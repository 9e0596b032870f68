// The tables of what was trained, and where: head schedules, recipes, machines.
//
//   page += table_html(machine_table(comparison));
#pragma once

#include "prism/report/compare.h"
#include "prism/report/table.h"

namespace prism {

/// Heads times width, a row for each layer, a column for each group. No rows: no group says.
Table schedule_table(const Comparison& comparison);

/// The recipe's fields in which the groups differ; equal consecutive list elements share a row. No rows: none differ.
Table recipe_table(const Comparison& comparison);

/// CPU, threads, number format, share of the CPU's limit, memory.
Table machine_table(const Comparison& comparison);

}  // namespace prism
