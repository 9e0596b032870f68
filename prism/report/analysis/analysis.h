// Tables and pictures of the results of `prism analyse ... --json`.
//
//   const AnalysisRecords records = read_analysis_records({"entropy.jsonl", "maps.jsonl"});
//   for (const auto& table : analysis_tables(records)) page += table_html(table);
//   for (const auto& picture : analysis_pictures(records)) page += heat_map_svg(picture.map);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/report/analysis/lines.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

struct AnalysisRecords {
  std::vector<AnalysisGroup> groups;  ///< in the order of their first lines

  bool empty() const { return groups.empty(); }
  /// @throws InputError for a line of an unknown analysis, or one that lacks a field of its analysis or has one of the
  ///         wrong type.
  void add(const Json& line, const std::string& place);
};

/// The names in prism analyse of the analyses that have lines.
std::vector<std::string> analysis_names();

/// @throws InputError for files that cannot be read or have no lines, and for the lines that AnalysisRecords::add()
///         rejects.
AnalysisRecords read_analysis_records(const std::vector<std::filesystem::path>& files);

/// The tables of each group, without those that have no rows.
std::vector<Table> analysis_tables(const AnalysisRecords& records);

/// Residual stream by layer, with one series for each model and text; attention distance by layer for each comparison;
/// gain and energy of rotary pairs, and head budgets by layer, for each model. Ids are unique. Empty if there are no
/// such lines.
std::vector<LabelledPlot> analysis_plots(const AnalysisRecords& records);

/// Pictures of the entropy and attention distance of every head, what heads attend to, gradients by layer, heads that
/// classes compute, and attention maps. Names are unique.
std::vector<AnalysisPicture> analysis_pictures(const AnalysisRecords& records);

}  // namespace prism
