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
#include "prism/report/draw/heat_map.h"
#include "prism/report/draw/plot.h"
#include "prism/report/tables/table.h"

namespace prism {

/// The lines of one analysis of one model on one input.
struct AnalysisGroup {
  std::string analysis;  ///< entropy, gradients, heads, maps or norms
  std::string model;     ///< as named on the command line
  std::string reading;   ///< describes the input
  std::vector<Json> lines;
};

struct AnalysisRecords {
  std::vector<AnalysisGroup> groups;  ///< in the order of their first lines

  bool empty() const { return groups.empty(); }
  /// The models of analysis_plots(), in the order of their series numbers.
  std::vector<std::string> plotted() const;
  /// @throws InputError for a line of an unknown analysis, or one that lacks a field of its analysis.
  void add(const Json& line, const std::string& place);
};

/// @throws InputError for files that cannot be read or have no lines, and for the lines that AnalysisRecords::add()
///         rejects.
AnalysisRecords read_analysis_records(const std::vector<std::filesystem::path>& files);

/// A table for each group except maps.
std::vector<Table> analysis_tables(const AnalysisRecords& records);

struct AnalysisPicture {
  std::string name;  ///< file name without ending: "entropy", "map-layer0-head1"
  std::string title;
  std::string reading;  ///< describes the input
  HeatMap map;
};

/// Residual stream by layer, with one series for each model and text. Empty if there are no such lines.
std::vector<Plot> analysis_plots(const AnalysisRecords& records);

/// Pictures of the entropy of every head, what heads attend to, gradients by layer, and attention maps. Names are
/// unique.
std::vector<AnalysisPicture> analysis_pictures(const AnalysisRecords& records);

}  // namespace prism
