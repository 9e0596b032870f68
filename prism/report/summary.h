// The report's tables and its first sentence: every number of a comparison, as texts. One source for all renderings.
//
//   fmt::print("{}", table_text(results_table(comparison)));
#pragma once

#include <string>

#include "prism/report/compare.h"
#include "prism/report/table.h"

namespace prism {

/// One sentence: which group has the lowest validation loss, and by how much it differs from the baseline.
std::string headline(const Comparison& comparison);

/// ` At the last evaluation that both have: prism −0.0302 ± 0.0054.`, or nothing where there is nothing to compare.
std::string last_differences(const Comparison& comparison);

/// A row for each group: schedule, size, tokens, validation loss, difference to the baseline, rate, time.
Table results_table(const Comparison& comparison);

/// A row for each single run: seed, folder, losses, state.
Table runs_table(const Comparison& comparison);

/// The validation curves in numbers: a row for each of at most a dozen token counts, a column for each group.
Table validation_table(const Comparison& comparison);

/// Heads times width, a row for each layer, a column for each group. No rows: no group says.
Table schedule_table(const Comparison& comparison);

/// The recipe's fields in which the groups differ; equal consecutive list elements share a row. No rows: none differ.
Table recipe_table(const Comparison& comparison);

/// CPU, threads, number format, share of the CPU's limit, memory.
Table machine_table(const Comparison& comparison);

}  // namespace prism
