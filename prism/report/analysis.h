// What analyses of models found, from the JSON lines of `prism analyse ... --json`: tables and pictures.
//
//   const AnalysisRecords records = read_analysis_records({"entropy.jsonl", "maps.jsonl"});
//   for (const auto& table : analysis_tables(records)) page += table_html(table);
//   for (const auto& picture : analysis_pictures(records)) page += heat_map_svg(picture.map);
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/report/heat_map.h"
#include "prism/report/plot.h"
#include "prism/report/table.h"

namespace prism {

/// Lines of one analysis of one model.
struct AnalysisGroup {
  std::string analysis;  ///< entropy, gradients, heads, maps or norms
  std::string model;     ///< as it was named
  std::string reading;   ///< what it read, in words
  std::vector<Json> lines;
};

struct AnalysisRecords {
  std::vector<AnalysisGroup> groups;  ///< in the order of their first lines

  bool empty() const { return groups.empty(); }
  /// The models of analysis_plots(), by the numbers of their series.
  std::vector<std::string> plotted() const;
  /// @throws InputError for a line of no analysis that is shown here, or without what such a line holds.
  void add(const Json& line, const std::string& place);
};

/// @throws InputError for files that cannot be read or hold no line, and lines as AnalysisRecords::add().
AnalysisRecords read_analysis_records(const std::vector<std::filesystem::path>& files);

/// A table for each group but maps.
std::vector<Table> analysis_tables(const AnalysisRecords& records);

struct AnalysisPicture {
  std::string name;  ///< of its file, without an ending: "entropy", "map-layer0-head1"
  std::string title;
  std::string reading;  ///< what was read, in words
  HeatMap map;
};

/// The residual stream over layers, with a series for each model and text; nothing where no line is of it.
std::vector<Plot> analysis_plots(const AnalysisRecords& records);

/// Entropy of every head, what heads attend to, gradients by layers, and attention maps. Names are unique.
std::vector<AnalysisPicture> analysis_pictures(const AnalysisRecords& records);

}  // namespace prism
