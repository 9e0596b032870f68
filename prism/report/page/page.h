// The report as one self-contained HTML page, and its figures as files.
//
//   const Comparison comparison = compare_runs({read_run("runs/uniform"), read_run("runs/prism")});
//   write_file("report.html", report_html(comparison, {}, &problems));
#pragma once

#include <string>
#include <vector>

#include "prism/report/analysis/analysis.h"
#include "prism/report/compare/compare.h"
#include "prism/report/evaluation/evaluation.h"
#include "prism/report/page/prefill.h"

namespace prism {

struct ReportOptions {
  std::string title = {};             ///< if empty, made from the groups' labels
  std::string gnuplot = "gnuplot";    ///< the program that draws the plots
  PrefillRecords prefill = {};        ///< shown in addition to the runs
  AnalysisRecords analysis = {};      ///< shown in addition to the runs
  EvaluationRecords evaluation = {};  ///< shown in addition to the runs
  std::string figures = {};           ///< folder of report_figures() relative to the Markdown; empty: no figures
};

/// options.title, or one made from the labels of the groups.
std::string page_title(const Comparison& comparison, const ReportOptions& options);

/// options.title, or one for a report without runs.
std::string records_title(const ReportOptions& options);

/// The page. It refers to nothing outside itself. Its one script (page_script.h) shows values at points, hides groups
/// and arranges sections in tabs; no other script can run. The page is complete without the script. A plot that cannot
/// be drawn is replaced by a message, which is also appended to `problems`.
std::string report_html(const Comparison& comparison, const ReportOptions& options, std::vector<std::string>* problems);

/// The page's plots as standalone SVG files.
/// @throws FailedError like draw_plot().
std::vector<FigureFile> report_figures(const Comparison& comparison, const ReportOptions& options);

/// A report of options.prefill, options.analysis and options.evaluation, without runs.
std::string records_html(const ReportOptions& options, std::vector<std::string>* problems);
std::vector<FigureFile> records_figures(const ReportOptions& options);

}  // namespace prism
