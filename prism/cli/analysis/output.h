// The output of an analysis: JSON lines, or the tables and pictures that a report makes of them.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/cli/analysis/reading.h"
#include "prism/cli/command.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"

namespace prism {

struct OutputWords {
  std::string figures;
  bool json = false;
};

/// Adds --json and --figures.
void add_output_options(CLI::App& app, OutputWords& words);

/// Makes the folder of --figures, if it is given, before anything is measured. If nothing is written into it, it is
/// removed when the result goes out of scope. @throws InputError if a file is in the way; FailedError.
std::optional<MadeFolder> make_figures_folder(const std::string& figures);

/// The lines of one analysis (report/analysis/analysis.h).
class AnalysisLines {
 public:
  /// @param common  the fields that all lines begin with: analysis, its name in prism analyse; model, as named on the
  ///                command line; reading, which describes the input.
  explicit AnalysisLines(Json common) : common_(std::move(common)) {}

  void add(const Json& fields);
  /// Writes the pictures, then prints the lines or their tables.
  void print(const OutputWords& words) const;

 private:
  Json common_;
  std::vector<Json> lines_;
};

struct ReadingAnalysis {
  const char* name;       ///< in prism analyse
  const char* help;       ///< the first line is a summary
  bool has_loss = false;  ///< computes losses or gradients, which frozen weights have not
};

/// Runs the command of an analysis without options of its own. @param measure  returns the lines.
int run_reading_analysis(const Arguments& arguments, const ReadingAnalysis& analysis,
                         const std::function<std::vector<Json>(Reading&)>& measure);

/// Makes a line from each result of a probe.
template <class Result>
std::vector<Json> lines_of(const std::vector<Result>& results) {
  std::vector<Json> lines;
  for (const auto& result : results) lines.push_back(fields_to_json(result));
  return lines;
}

}  // namespace prism
