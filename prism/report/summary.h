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

/// A row for each single run: seed, folder, losses, state.
Table runs_table(const Comparison& comparison);

/// The validation curves in numbers: a row for each of at most a dozen token counts, a column for each group.
Table validation_table(const Comparison& comparison);

}  // namespace prism
