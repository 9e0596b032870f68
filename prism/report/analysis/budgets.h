// Tables, plots and pictures of `prism analyse budgets --json`. A line of kind layer has what one layer's head budget
// decides for a group of examples; savings, what the model costs with and without budgets; text, what a layer decides
// for a single text; map, the attention map of one of its heads.
//
//   for (const auto& table : budgets_tables(group)) page += table_html(table);
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/lines.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Checks that a line has all fields that are shown. @throws InputError or Json::exception if not.
void check_budgets(const Json& line, const std::string& place);

/// A table of the layers over all examples, one for each division of the examples, the savings, and the text.
std::vector<Table> budgets_tables(const AnalysisGroup& group);

/// For each division of the examples: share of heads, and entropy of their choice, over layers; a series for each part.
std::vector<LabelledPlot> budgets_plots(const AnalysisGroup& group);

/// For each layer, how often each class computes each head; the text's attention maps.
std::vector<AnalysisPicture> budgets_pictures(const AnalysisGroup& group);

}  // namespace prism
