// What an analysis prints: lines of JSON, or the tables that a report makes of them; and its pictures.
#pragma once

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "prism/cli/reading.h"
#include "prism/core/fields.h"

namespace prism {

struct OutputWords {
  std::string figures;
  bool json = false;
};

/// Adds --json and, where the analysis has pictures, --figures.
void add_output_options(CLI::App& app, OutputWords& words, bool with_figures);

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

}  // namespace prism
