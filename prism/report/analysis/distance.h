// Tables, plots and pictures of `prism analyse attention-distance --json`. A line of kind model has the distance of
// every head of a model, a line of kind layer the means over the models of an arm, or of two arms and their difference.
//
//   page += table_html(distances_table(group));
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/lines.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Checks that a line has all fields that are shown. @throws InputError or Json::exception if not.
void check_distances(const Json& line, const std::string& place);

/// The models of a line: "runs/prism-1 and runs/prism-2 against runs/uniform-1 and runs/uniform-2".
std::string compared_models(const Json& line);

/// A row for each layer. No rows for a group without lines of kind layer.
Table distances_table(const AnalysisGroup& group);

/// Distance over layers, with one series for each arm and a band over its models. Empty without lines of kind layer.
std::vector<LabelledPlot> distances_plots(const AnalysisGroup& group);

/// A picture of the heads of each line of kind model.
std::vector<AnalysisPicture> distances_pictures(const AnalysisGroup& group);

}  // namespace prism
