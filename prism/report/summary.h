// The report's first sentence and the tables of what came out, as texts. One source for all renderings.
//
//   fmt::print("{}", table_text(results_table(comparison)));
#pragma once

#include <string>

#include "prism/report/compare.h"
#include "prism/report/table.h"

namespace prism {

/// Which group has the lowest validation loss, and whether the seeds show that it is better than the baseline (where
/// that is the lowest itself: than the runner-up).
std::string headline(const Comparison& comparison);

/// A row for each group: schedule, size, tokens, validation loss, difference to the baseline, rate, time.
///
/// The lowest validation loss is strong only where find_verdict() holds it to be shown.
Table results_table(const Comparison& comparison);

/// When each group first had the baseline's mean final loss: tokens and seconds over the seeds that reach it. No rows:
/// the baseline was not evaluated, or there is no other group.
Table reach_table(const Comparison& comparison);

/// Which groups no other beats in loss and rate at once, as a sentence; empty below two groups that can be compared.
std::string front_text(const Comparison& comparison);

/// A row for each single run: seed, folder, losses, state.
Table runs_table(const Comparison& comparison);

/// The validation curves in numbers: a row for each of at most a dozen token counts, a column for each group.
Table validation_table(const Comparison& comparison);

/// The differences to the baseline likewise, without a column for it. No rows: nothing to compare.
Table difference_table(const Comparison& comparison);

}  // namespace prism
