// The report's first sentence and its result tables, as text. All output formats use them.
//
//   fmt::print("{}", table_text(results_table(comparison)));
#pragma once

#include <string>

#include "prism/report/compare/compare.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Names the group with the lowest validation loss, and says whether the seeds show that it is better than the baseline
/// (if it is the baseline: than the runner-up).
std::string headline(const Comparison& comparison);

/// A row for each group: schedule, size, tokens, validation loss, difference to the baseline, rate, time.
///
/// The lowest validation loss is marked only if find_verdict() says that the difference is shown.
Table results_table(const Comparison& comparison);

/// When each group first reached the baseline's mean final loss: tokens and seconds over the seeds that reach it. No
/// rows if the baseline was not evaluated or there is no other group.
Table reach_table(const Comparison& comparison);

/// A sentence naming the groups on the Pareto front of loss and rate; empty if fewer than two groups can be compared.
std::string front_text(const Comparison& comparison);

/// A row for each run: seed, folder, losses, state.
Table runs_table(const Comparison& comparison);

/// Values of the validation curves: a row for each of at most a dozen token counts, a column for each group.
Table validation_table(const Comparison& comparison);

/// Differences to the baseline in the same form; the baseline has no column. No rows if nothing can be compared.
Table difference_table(const Comparison& comparison);

}  // namespace prism
