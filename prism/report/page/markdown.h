// The report as Markdown, with tables and samples. Plots appear as tables of their values.
//
//   write_file("report.md", report_markdown(comparison, options));
#pragma once

#include <string>

#include "prism/report/page/page.h"

namespace prism {

std::string report_markdown(const Comparison& comparison, const ReportOptions& options);

/// A report of options.prefill, options.analysis and options.evaluation, without runs.
std::string records_markdown(const ReportOptions& options);

}  // namespace prism
