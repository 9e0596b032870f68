// What an analysis prints: lines of JSON, or the tables that a report makes of them; and its pictures.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "prism/cli/command.h"
#include "prism/cli/reading.h"
#include "prism/core/fields.h"

namespace prism {

struct OutputWords {
  std::string figures;
  bool json = false;
};

/// Adds --json and --figures.
void add_output_options(CLI::App& app, OutputWords& words);

/// The lines of one analysis of one model (report/analysis.h).
class AnalysisLines {
 public:
  /// @param analysis  its name, as in prism analyse. @param model  as it was named.
  AnalysisLines(std::string analysis, std::string model, const Reading& reading);

  void add(const Json& fields);
  /// Pictures first, then the lines or their tables.
  void print(const OutputWords& words) const;

 private:
  std::string analysis_, model_, reading_;
  std::vector<Json> lines_;
};

struct ReadingAnalysis {
  const char* name;  ///< as in prism analyse
  const char* help;  ///< its first line says what it is
};

/// The whole command of an analysis that needs no options of its own. @param measure  gives the lines.
int run_reading_analysis(const Arguments& arguments, const ReadingAnalysis& analysis,
                         const std::function<std::vector<Json>(Reading&)>& measure);

/// A line for each of a probe's results.
template <class Result>
std::vector<Json> lines_of(const std::vector<Result>& results) {
  std::vector<Json> lines;
  for (const auto& result : results) lines.push_back(fields_to_json(result));
  return lines;
}

}  // namespace prism
