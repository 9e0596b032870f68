// Notes of the results table: what its columns mean, and how groups differ from the others.
//
//   add_difference_notes(comparison, table);
#pragma once

#include "prism/report/compare/compare.h"
#include "prism/report/tables/table.h"

namespace prism {

/// The difference column's footnotes: the reference, the meaning of bold, and the exceptions.
void add_difference_notes(const Comparison& comparison, Table& table);

/// Notes the cost of a token relative to the baseline, for groups in which it differs.
void add_cost_note(const Comparison& comparison, Table& table);

/// Notes how tokens/s was measured, if not in the runs themselves.
void add_timing_note(const Comparison& comparison, Table& table);

/// Notes runs that diverged or have not finished.
void add_state_notes(const Comparison& comparison, Table& table);

}  // namespace prism
