// The report itself: one HTML page that needs nothing beside it, and the same as Markdown.
//
//   const Comparison comparison = compare_runs({read_run("runs/uniform"), read_run("runs/prism")});
//   write_file("report.html", report_html(comparison, {}, &problems));
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis.h"
#include "prism/report/compare.h"
#include "prism/report/prefill.h"

namespace prism {

struct ReportOptions {
  std::string title = {};           ///< empty: made from the groups' labels
  std::string gnuplot = "gnuplot";  ///< the program that draws the plots
  PrefillRecords prefill = {};      ///< shown besides
  AnalysisRecords analysis = {};    ///< shown besides
  std::string figures = {};         ///< where the Markdown finds report_figures(), from its folder; empty: it has none
};

/// The page: no reference to anything outside it. Its one script (page_script.h) shows values at points, hides groups
/// and turns kinds of sections into tabs; without it the page is as complete, and no other script can run. What could
/// not be drawn is said in its place, and in `problems`.
std::string report_html(const Comparison& comparison, const ReportOptions& options, std::vector<std::string>* problems);

struct FigureFile {
  std::string name, svg;
};

/// The page's plots as SVG files that stand alone.
/// @throws FailedError as draw_plot().
std::vector<FigureFile> report_figures(const Comparison& comparison, const ReportOptions& options);

/// Tables and samples; the plots' numbers as tables.
std::string report_markdown(const Comparison& comparison, const ReportOptions& options);

/// The same of options.prefill and options.analysis alone, without runs.
std::string records_html(const ReportOptions& options, std::vector<std::string>* problems);
std::vector<FigureFile> records_figures(const ReportOptions& options);
std::string records_markdown(const ReportOptions& options);

}  // namespace prism
