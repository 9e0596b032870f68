// Lines of prism analyse --json, read as a report reads them.
#pragma once

#include <fstream>
#include <string>
#include <vector>

#include "prism/report/analysis/analysis.h"
#include "tests/core/message_of.h"
#include "tests/report/run_folder.h"

namespace prism {

inline AnalysisRecords records_of(const std::vector<std::string>& lines) {
  AnalysisRecords records;
  for (const auto& line : lines) records.add(Json::parse(line), "here");
  return records;
}

/// The message with which a file of this one line is refused.
inline std::string refusal(const std::string& line) {
  const RunFolder folder;
  const auto file = folder.path("line.jsonl");
  std::ofstream(file) << line << "\n";
  return message_of([&] { read_analysis_records({file}); });
}

}  // namespace prism
