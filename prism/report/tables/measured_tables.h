// Tables of the final measurements on trained models. A table without rows means that nothing was measured.
//
//   if (const Table table = text_loss_table(comparison); !table.rows.empty()) page += table_html(table);
#pragma once

#include "prism/report/compare/compare.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Loss per token of each text: a row for each group that has it, with the paired difference and its interval.
Table text_loss_table(const Comparison& comparison);

/// Scores of classifiers on the test split: a row for each group that has them, with the paired difference in accuracy
/// and its interval.
Table test_table(const Comparison& comparison);

/// Mean attention distance: a row for each layer, a column for each group.
Table distance_table(const Comparison& comparison);

/// Attention distance minus the baseline's; the baseline has no column.
Table distance_difference_table(const Comparison& comparison);

/// Two rows for each group, with intervals: the mean difference over the layers whose number of heads differs from the
/// baseline's, and over the other layers. Shows whether early layers become more local.
Table distance_stretch_table(const Comparison& comparison);

}  // namespace prism
