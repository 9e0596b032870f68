// Tables and plots of prism analyse weights, gates and twins.
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/lines.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

/// Check that a line has the fields that tables and plots use. @throws Json::exception or InputError.
void check_stable_rank(const Json& line, const std::string& place);
void check_gates(const Json& line, const std::string& place);
void check_twins(const Json& line, const std::string& place);

/// Stable ranks of each layer's matrices.
Table stable_ranks_table(const AnalysisGroup& group);
/// Stable rank by layer, with a series for each matrix.
std::vector<LabelledPlot> stable_ranks_plots(const AnalysisGroup& group);
Table gates_table(const AnalysisGroup& group);
Table twins_table(const AnalysisGroup& group);

}  // namespace prism
