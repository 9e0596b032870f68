// The tables of what was measured on the trained models. No rows: nothing was.
//
//   if (const Table table = text_loss_table(comparison); !table.rows.empty()) page += table_html(table);
#pragma once

#include "prism/report/compare.h"
#include "prism/report/table.h"

namespace prism {

/// Loss per token of each text: a row for each group that has it, with the paired difference and its interval.
Table text_loss_table(const Comparison& comparison);

/// Mean attention distance: a row for each layer, a column for each group.
Table distance_table(const Comparison& comparison);

/// The same minus the baseline's, without a column for it.
Table distance_difference_table(const Comparison& comparison);

/// The same in two figures with intervals: of each group the mean over the layers whose heads are not as many as the
/// baseline's, and over the others. Whether early layers become more local is asked here.
Table distance_stretch_table(const Comparison& comparison);

}  // namespace prism
