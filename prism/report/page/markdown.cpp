#include "prism/report/page/markdown.h"

#include <fmt/format.h>

#include <filesystem>
#include <vector>

#include "prism/report/draw/escape.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/page/diagnostics.h"
#include "prism/report/page/figures.h"
#include "prism/report/page/samples.h"
#include "prism/report/page/swept_plots.h"
#include "prism/report/tables/measured_tables.h"
#include "prism/report/tables/setup_tables.h"
#include "prism/report/tables/summary.h"

namespace prism {
namespace {

/// @param folder  the folder of the figures, relative to the document.
std::string markdown_figure(const Plot& plot, const std::string& folder) {
  const auto file = (std::filesystem::path(folder) / figure_file_name(plot)).generic_string();
  const std::string words = escape_markdown(plot.description);
  return fmt::format("![{}](<{}>)\n\n{}.\n\n", words, file, words);
}

std::string markdown_figures(const std::vector<Plot>& plots, const std::string& folder) {
  std::string text;
  for (const Plot& plot : plots) text += markdown_figure(plot, folder);
  return text;
}

std::string markdown_figures(const std::vector<LabelledPlot>& plots, const std::string& folder) {
  std::string text;
  for (const auto& labelled : plots) text += markdown_figure(labelled.plot, folder);
  return text;
}

/// The tables that have rows.
std::string markdown_tables(const std::vector<Table>& tables) {
  std::string text;
  for (const auto& table : tables) {
    if (!table.rows.empty()) text += table_markdown(table) + "\n";
  }
  return text;
}

/// Tasks, sparse prefill and analyses.
std::string records_text(const ReportOptions& options) {
  std::string text = markdown_tables(evaluation_tables(options.evaluation));
  if (!options.figures.empty()) text += markdown_figures(prefill_plots(options.prefill), options.figures);
  text += markdown_tables(prefill_tables(options.prefill));
  text += markdown_tables(analysis_tables(options.analysis));
  if (options.figures.empty()) return text;
  text += markdown_figures(analysis_plots(options.analysis), options.figures);
  for (const auto& pictures : {analysis_pictures(options.analysis), evaluation_pictures(options.evaluation)})
    for (const auto& picture : pictures) {
      const auto file = (std::filesystem::path(options.figures) / (picture.name + ".svg")).generic_string();
      text += fmt::format("![{0}](<{1}>)\n\n{0}.\n\n", escape_markdown(picture.title), file);
    }
  return text;
}

}  // namespace

std::string report_markdown(const Comparison& comparison, const ReportOptions& options) {
  std::string text = "# " + escape_markdown(page_title(comparison, options)) + "\n\n";
  text += escape_markdown(headline(comparison)) + "\n\n" + table_markdown(results_table(comparison)) + "\n";
  for (const auto& remark : comparison.remarks) text += escape_markdown(remark) + "\n\n";
  if (!options.figures.empty()) {
    text += markdown_figures(report_plots(comparison), options.figures);
    text += markdown_figures(swept_plots(comparison), options.figures);
  }
  text += markdown_tables({validation_table(comparison), difference_table(comparison), reach_table(comparison)});
  if (const std::string front = front_text(comparison); !front.empty()) text += escape_markdown(front) + "\n\n";
  text += markdown_tables({test_table(comparison), text_loss_table(comparison), distance_table(comparison),
                           distance_difference_table(comparison), distance_stretch_table(comparison),
                           schedule_table(comparison)});
  if (!options.figures.empty()) text += markdown_figures(diagnostics_plots(comparison), options.figures);
  text += markdown_tables({warnings_table(comparison), diagnostics_table(comparison)});
  text += records_text(options) + samples_markdown(comparison);
  if (comparison.groups.size() > 1) text += markdown_tables({recipe_table(comparison)});
  return text + table_markdown(machine_table(comparison)) + "\n" + table_markdown(runs_table(comparison));
}

std::string records_markdown(const ReportOptions& options) {
  std::string text = "# " + escape_markdown(records_title(options)) + "\n\n";
  return text + records_text(options);
}

}  // namespace prism
