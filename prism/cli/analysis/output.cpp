#include "prism/cli/analysis/output.h"

#include <fmt/format.h>

#include <utility>

#include "prism/report/page/page.h"

namespace prism {

void add_output_options(CLI::App& app, OutputWords& words) {
  app.add_option("--figures", words.figures, "also write pictures, as SVG files, into this folder")
      ->type_name("FOLDER");
  app.add_flag("--json", words.json,
               "print one JSON object per line instead of tables; prism report --analysis shows them");
}

std::optional<MadeFolder> make_figures_folder(const std::string& figures) {
  if (figures.empty()) return std::nullopt;
  return MadeFolder(figures);
}

void AnalysisLines::add(const Json& fields) {
  Json line = common_;
  line.update(fields);
  lines_.push_back(std::move(line));
}

void AnalysisLines::print(const OutputWords& words) const {
  AnalysisRecords records;
  for (const auto& line : lines_) records.add(line, "analyse");
  if (!words.figures.empty()) {
    ReportOptions options;
    options.analysis = records;
    write_figures(records_figures(options), words.figures);
  }
  if (words.json) {
    for (const auto& line : lines_) fmt::print("{}\n", to_text(line));
    return;
  }
  const auto text = tables_text(analysis_tables(records));
  fmt::print("{}", text);
  if (!words.figures.empty()) fmt::print("{}{}\n", text.empty() ? "" : "\n", words.figures);
}

int run_reading_analysis(const Arguments& arguments, const ReadingAnalysis& analysis,
                         const std::function<std::vector<Json>(Reading&)>& measure) {
  CLI::App app(analysis.help, fmt::format("prism analyse {}", analysis.name));
  ReadingWords words;
  OutputWords output;
  add_reading_options(app, words, /*with_data=*/true, /*with_weights=*/!analysis.has_loss);
  add_output_options(app, output);
  if (!parse(app, arguments)) return 0;
  const auto folder = make_figures_folder(output.figures);
  Reading reading(words);
  AnalysisLines lines({{"analysis", analysis.name}, {"model", words.model}, {"reading", reading.description()}});
  for (const auto& line : measure(reading)) lines.add(line);
  lines.print(output);
  return 0;
}

}  // namespace prism
