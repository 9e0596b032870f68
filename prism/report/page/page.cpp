#include "prism/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/page/diagnostics.h"
#include "prism/report/page/figures.h"
#include "prism/report/page/page_script.h"
#include "prism/report/page/page_style.h"
#include "prism/report/page/parts.h"
#include "prism/report/page/samples.h"
#include "prism/report/page/sections.h"
#include "prism/report/page/swept_plots.h"
#include "prism/report/tables/setup_tables.h"
#include "prism/report/tables/summary.h"

namespace prism {
namespace {

/// In addition to escaping: the page may load nothing and run only its own script, whatever a name or a sample
/// contains.
std::string content_policy() {
  return fmt::format(
      "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; base-uri 'none'; form-action 'none'",
      kPageScriptHash);
}

/// More pictures would make the page too large for browsers.
constexpr size_t kMostPictures = 48;

/// The page up to the first section.
std::string page_head(const std::string& title, const std::string& lead) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", content_policy());
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n", escape_html(title), kPageColours,
                      kHeatMapStyle, kPageStyle);
  return page + fmt::format("<header>\n<h1>{}</h1>\n{}</header>\n<main>\n", escape_html(title),
                            lead.empty() ? "" : paragraph_html(lead, "lead"));
}

std::string prefill_section(const PrefillRecords& records, const char* heading = "Sparse prefill") {
  std::string content;
  for (const Table& table : prefill_tables(records))
    content += "<h3>" + escape_html(table.caption) + "</h3>\n" + table_html(table);
  return section_html(kSparsity, heading, content);
}

/// Plots that belong to no run, each with its own key.
std::string plots_with_keys(const std::vector<LabelledPlot>& plots, const std::string& gnuplot,
                            std::vector<std::string>* problems) {
  std::string drawings;
  try {
    for (const auto& [plot, labels] : plots)
      drawings += fmt::format("<figure>\n{}<figcaption>{}.</figcaption>\n</figure>\n", plot_file(plot, labels, gnuplot),
                              escape_html(plot.description));
    return drawings;
  } catch (const FailedError& error) {
    problems->emplace_back(error.what());
    return paragraph_html(error.what(), "missing");
  }
}

/// The plot of the number that a sweep varied.
std::string swept_section(const Comparison& comparison, const std::string& gnuplot,
                          std::vector<std::string>* problems) {
  const auto drawings = plots_with_keys(swept_plots(comparison), gnuplot, problems);
  return section_html(kTraining, "The swept number", drawings.empty() ? "" : figures_html(drawings));
}

std::string picture_html(const AnalysisPicture& picture) {
  return fmt::format("<figure{}>\n{}<figcaption><b>{}</b> Input: {}.</figcaption>\n</figure>\n",
                     picture.map.columns.size() > kWideHeatMap ? " class=\"wide\"" : "", heat_map_svg(picture.map),
                     escape_html(picture.title), escape_html(picture.reading));
}

/// Tables and pictures of prism eval --task.
std::string evaluation_section(const EvaluationRecords& records) {
  std::string content, drawings;
  for (const Table& table : evaluation_tables(records))
    content += "<h3>" + escape_html(table.caption) + "</h3>\n" + table_html(table);
  for (const auto& picture : evaluation_pictures(records)) drawings += picture_html(picture);
  if (!drawings.empty()) content += figures_html(drawings);
  return section_html(kComparison, "Evaluation", content);
}

/// Tables and pictures of prism analyse.
std::string analysis_section(const ReportOptions& options, std::vector<std::string>* problems) {
  const auto& records = options.analysis;
  std::string content, drawings = plots_with_keys(analysis_plots(records), options.gnuplot, problems);
  for (const Table& table : analysis_tables(records))
    content += "<h3>" + escape_html(table.caption) + "</h3>\n" + table_html(table);
  const auto pictures = analysis_pictures(records);
  for (size_t i = 0; i < std::min(pictures.size(), kMostPictures); ++i) drawings += picture_html(pictures[i]);
  if (!drawings.empty()) content += figures_html(drawings);
  if (pictures.size() > kMostPictures)
    content +=
        paragraph_html(fmt::format("{} more pictures are left out; prism analyse --figures writes them as files.",
                                   pictures.size() - kMostPictures));
  return section_html(kAttention, "Inside models", content);
}

/// The script and its data. They are at the end, where all elements they refer to exist.
std::string script_html(const Comparison& comparison, const FigureWriter& writer) {
  return fmt::format("<script type=\"application/json\" id=\"plot-data\">{}</script>\n<script>{}</script>\n",
                     plot_data(labels_of(comparison.groups), writer.drawn()), kPageScript);
}

}  // namespace

std::string page_title(const Comparison& comparison, const ReportOptions& options) {
  if (!options.title.empty()) return options.title;
  const auto labels = labels_of(comparison.groups);
  if (labels.size() == 1) return "Training run " + labels.front();
  if (labels.size() <= 3) return "Comparison of " + join_names(labels);
  return fmt::format("Comparison of {} models", labels.size());
}

std::string records_title(const ReportOptions& options) {
  if (!options.title.empty()) return options.title;
  if (!options.prefill.empty()) return "Sparse prefill";
  return options.evaluation.empty() ? "Analyses of models" : "Evaluation of models";
}

std::string report_html(const Comparison& comparison, const ReportOptions& options,
                        std::vector<std::string>* problems) {
  const std::string title = page_title(comparison, options);
  FigureWriter writer(options.gnuplot, problems);
  std::string page = page_head(title, headline(comparison));
  page += results_section(comparison);
  page += loss_section(comparison, writer);
  page += swept_section(comparison, options.gnuplot, problems);
  page += cost_section(comparison, writer);
  page += evaluation_section(options.evaluation);
  page += test_section(comparison);
  page += text_section(comparison);
  page += diagnostics_section(comparison, writer);
  page += distance_section(comparison, writer);
  page += schedule_section(comparison);
  page += analysis_section(options, problems);
  page += prefill_section(options.prefill);
  page += samples_section(comparison);
  page += recipe_section(comparison);
  page += section_html(kComparison, "Machine", table_html(machine_table(comparison)));
  page += section_html(kComparison, "Runs", table_html(runs_table(comparison)));
  page += "</main>\n<footer>Written by prism report from records.jsonl and recipe.json of each run.</footer>\n";
  return page + script_html(comparison, writer) + "</body>\n</html>\n";
}

std::vector<FigureFile> report_figures(const Comparison& comparison, const ReportOptions& options) {
  std::vector<FigureFile> files;
  for (const Plot& plot : report_plots(comparison))
    files.push_back({figure_file_name(plot), plot_file(plot, labels_of(comparison.groups), options.gnuplot)});
  for (const auto& [plot, labels] : swept_plots(comparison))
    files.push_back({figure_file_name(plot), plot_file(plot, labels, options.gnuplot)});
  for (const Plot& plot : diagnostics_plots(comparison))
    files.push_back({figure_file_name(plot), plot_file(plot, labels_of(comparison.groups), options.gnuplot)});
  for (auto& file : records_figures(options)) files.push_back(std::move(file));
  return files;
}

std::string records_html(const ReportOptions& options, std::vector<std::string>* problems) {
  std::string page = page_head(records_title(options), "") + evaluation_section(options.evaluation);
  page += prefill_section(options.prefill, "Tables");
  const auto drawings = plots_with_keys(prefill_plots(options.prefill), options.gnuplot, problems);
  page += section_html(kSparsity, "Figures", drawings.empty() ? "" : figures_html(drawings));
  page += analysis_section(options, problems);
  return page + "</main>\n<footer>Written by prism report.</footer>\n</body>\n</html>\n";
}

std::vector<FigureFile> records_figures(const ReportOptions& options) {
  std::vector<FigureFile> files;
  for (const auto& plots : {prefill_plots(options.prefill), analysis_plots(options.analysis)})
    for (const auto& [plot, labels] : plots)
      files.push_back({figure_file_name(plot), plot_file(plot, labels, options.gnuplot)});
  for (const auto& pictures : {analysis_pictures(options.analysis), evaluation_pictures(options.evaluation)})
    for (const auto& picture : pictures) files.push_back({picture.name + ".svg", heat_map_file(picture.map)});
  return files;
}

}  // namespace prism
