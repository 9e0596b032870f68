#include "prism/report/page/sections.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "prism/core/progress.h"
#include "prism/core/text/names.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/schedule_picture.h"
#include "prism/report/page/diagnostics.h"
#include "prism/report/page/figures.h"
#include "prism/report/tables/measured_tables.h"
#include "prism/report/tables/setup_tables.h"
#include "prism/report/tables/summary.h"

namespace prism {
namespace {

/// A longer table is collapsed above the tabs.
constexpr size_t kMostOpenRows = 40;

/// Hidden until the script shows it, since it is only true with the script.
constexpr const char* kHint =
    "<p class=\"note hint\" hidden>Point at a plot to see its values, or move to it with the Tab key and use the arrow "
    "keys. Click a name to hide or show it in all plots.</p>\n";

std::string band_text(const Comparison& comparison) {
  return has_seeds(comparison)
             ? " The line is the mean over seeds, the band one sample standard deviation to either side."
             : "";
}

std::string cut_text(const Comparison& comparison, Losses losses) {
  return cuts_first_part(comparison, losses) ? " The first, steep part lies above the scale." : "";
}

std::string train_caption(const Comparison& comparison, const Plot& plot) {
  std::string text = "Mean over a centred window of a twentieth of the run";
  if (has_seeds(comparison)) text += shows_mean_training(comparison) ? " and over seeds" : ", one line for each seed";
  const auto faint = [](const PlotSeries& series) { return series.style == PlotStyle::kFaint; };
  if (std::any_of(plot.series.begin(), plot.series.end(), faint)) text += "; the recorded values are faint";
  return text + "." + cut_text(comparison, Losses::training);
}

/// The two figures of the differences to the baseline.
std::string difference_figures(const Comparison& comparison, FigureWriter& writer) {
  const auto& baseline = comparison.groups[comparison.baseline].label;
  const char* nothing = "The runs have no evaluations that can be compared yet.";
  const char* band = has_seeds(comparison)
                         ? " The line is the mean of the differences paired by seed; the band is one sample "
                           "standard deviation of them to either side. If no seed is shared, the band is the "
                           "root of the sum of both squared deviations."
                         : "";
  const char* bars =
      has_seeds(comparison)
          ? " The bar is the 95% interval (Student's t) of the mean over the shared seeds, for each group "
            "separately; a pale dot is one seed. A bar that includes zero shows no difference. A group "
            "without a bar shares fewer than two seeds."
          : " With one seed there is no interval.";
  const auto& metric = comparison.metric;
  std::string content = writer.figure(
      difference_plot(comparison), "Difference in validation " + metric.noun(),
      fmt::format("Validation {} minus that of {} after equal numbers of {}; {} zero is better.{}", metric.noun(),
                  baseline, comparison.counted(), metric.less_is_better ? "below" : "above", band),
      nothing);
  return content + writer.figure(forest_plot(comparison), "Final difference of each run",
                                 fmt::format("The last difference of figure 3; {} of zero is better than {}.{}",
                                             metric.less_is_better ? "left" : "right", baseline, bars),
                                 nothing);
}

std::string pareto_caption(const Comparison& comparison, const Plot& plot) {
  std::string text =
      fmt::format("{} and further right is better. ", comparison.metric.less_is_better ? "Lower" : "Higher") +
      front_text(comparison);
  const auto joins = [](const PlotSeries& series) { return series.style == PlotStyle::kGuide; };
  if (std::any_of(plot.series.begin(), plot.series.end(), joins)) text += " The dashed line joins them.";
  if (has_seeds(comparison)) text += " Marks are means over seeds, bars one sample standard deviation to either side.";
  return text;
}

std::string cost_text(const Run& run) {
  std::string text;
  if (run.parameters) text += fmt::format("{} parameters", short_number(static_cast<double>(*run.parameters)));
  if (run.flops_per_token) {
    text += fmt::format("{}{} FLOPs a token", text.empty() ? "" : ", ",
                        short_number(static_cast<double>(*run.flops_per_token)));
  }
  return text;
}

}  // namespace

std::string results_section(const Comparison& comparison) {
  const Table table = results_table(comparison);
  std::string content = table.rows.size() > kMostOpenRows
                            ? table_details(table, fmt::format("Results of all {} groups", table.rows.size()))
                            : table_html(table);
  for (const auto& remark : comparison.remarks) content += paragraph_html(remark, "note");
  return section_html(kNoTab, "Results", content);
}

std::string loss_section(const Comparison& comparison, FigureWriter& writer) {
  const Plot train = train_plot(comparison);
  std::string content = writer.figure(train, "Training loss", train_caption(comparison, train),
                                      "No training loss has been recorded yet.");
  const auto& metric = comparison.metric;
  content += writer.figure(valid_plot(comparison), "Validation " + metric.noun(),
                           band_text(comparison) + cut_text(comparison, Losses::validation),
                           fmt::format("No validation {} has been recorded yet.", metric.noun()));
  if (comparison.groups.size() > 1) content += difference_figures(comparison, writer);
  if (const Plot shares = share_plot(comparison); !shares.series.empty())
    content += writer.figure(shares, "Share of heads",
                             fmt::format("s of the head budgets, mean over layers: the line is of training, points are "
                                         "of validation.{}",
                                         has_seeds(comparison) ? " Means over seeds." : ""),
                             "");
  return section_html(
      kTraining, fmt::format("Loss against {}", comparison.counted()),
      legend_html(comparison) + kHint + figures_html(content) +
          table_details(validation_table(comparison),
                        metric.is_loss() ? "The validation losses in numbers" : "The validations in numbers") +
          table_details(difference_table(comparison), "Their differences in numbers"));
}

std::string cost_section(const Comparison& comparison, FigureWriter& writer) {
  const Plot plot = pareto_plot(comparison);
  std::string content;
  if (!plot.series.empty()) {
    content =
        legend_html(comparison) +
        figures_html(writer.figure(plot, fmt::format("Final validation {} against rate", comparison.metric.noun()),
                                   pareto_caption(comparison, plot), ""));
  }
  const Table reach = reach_table(comparison);
  if (!reach.rows.empty()) content += "<h3>" + escape_html(reach.caption) + "</h3>\n" + table_html(reach);
  return section_html(kComparison, "Loss against cost", content);
}

std::string test_section(const Comparison& comparison) {
  const Table table = test_table(comparison);
  return table.rows.empty() ? "" : section_html(kComparison, "Scores on the test split", table_html(table));
}

std::string text_section(const Comparison& comparison) {
  const Table table = text_loss_table(comparison);
  return table.rows.empty() ? "" : section_html(kComparison, "Loss on whole texts", table_html(table));
}

std::string diagnostics_section(const Comparison& comparison, FigureWriter& writer) {
  std::string content;
  if (const Table warnings = warnings_table(comparison); !warnings.rows.empty())
    content += "<h3>" + escape_html(warnings.caption) + "</h3>\n" + table_html(warnings);
  const auto plots = diagnostics_plots(comparison);
  std::string drawings;
  for (const Plot& plot : plots)
    drawings +=
        writer.figure(plot, diagnostics_title(plot.id), diagnostics_caption(plot.id) + band_text(comparison), "");
  if (!plots.empty()) content += legend_html(comparison) + figures_html(drawings);
  content += table_details(diagnostics_table(comparison), "The layers in numbers");
  for (const Table& table : parameter_tables(comparison)) content += table_details(table, table.caption);
  return section_html(kDiagnostics, "Diagnostics", content);
}

std::string distance_section(const Comparison& comparison, FigureWriter& writer) {
  const Plot distances = distance_plot(comparison);
  if (distances.series.empty()) return {};
  const Plot gaps = distance_difference_plot(comparison);
  std::string content =
      writer.figure(distances, "Mean attention distance",
                    fmt::format("How far the heads of a layer look back.{}", band_text(comparison)), "");
  if (!gaps.series.empty()) {
    content += writer.figure(
        gaps, "Difference in attention distance",
        fmt::format("Distance minus that of {}, paired by seed. Layers in which a run has a different number of heads "
                    "are shaded, darker for more runs.{}",
                    comparison.groups[comparison.baseline].label, band_text(comparison)),
        "");
  }
  const Table stretches = distance_stretch_table(comparison);
  return section_html(kAttention, "Attention distance",
                      legend_html(comparison) + figures_html(content) +
                          (stretches.rows.empty() ? "" : table_html(stretches)) +
                          table_details(distance_table(comparison), "The distances in numbers") +
                          table_details(distance_difference_table(comparison), "Their differences in numbers"));
}

std::string schedule_section(const Comparison& comparison) {
  std::vector<std::pair<const Run*, std::vector<std::string>>> distinct;
  for (const auto& group : comparison.groups) {
    const Run& run = group.runs.front();
    if (run.layers.empty()) continue;
    const auto same = std::find_if(distinct.begin(), distinct.end(), [&](const auto& row) {
      return row.first->layers == run.layers && row.first->schedule == run.schedule &&
             cost_text(*row.first) == cost_text(run);
    });
    if (same == distinct.end()) {
      distinct.push_back({&run, {group.label}});
    } else {
      same->second.push_back(group.label);
    }
  }
  if (distinct.empty()) return {};
  std::string content = paragraph_html(
      "Each row is a layer, counted from 0, with the first on top. Each box is an attention head, drawn to its width. "
      "The heads of a layer are together as wide as the model, so fewer heads are wider. The first head of each layer "
      "is drawn in a strong colour.");
  content += "<div class=\"schedules\">\n";
  for (const auto& [run, labels] : distinct) {
    const std::string label = join_names(labels), cost = cost_text(*run);
    content += fmt::format("<figure>\n<figcaption><b>{}</b> {}", escape_html(label), escape_html(run->schedule));
    if (!cost.empty()) content += fmt::format("<br><span>{}</span>", escape_html(cost));
    content += "</figcaption>\n" + schedule_svg(run->layers, label) + "</figure>\n";
  }
  return section_html(kAttention, "Head schedules", content + "</div>\n");
}

std::string recipe_section(const Comparison& comparison) {
  if (comparison.groups.size() < 2) return {};
  const Table table = recipe_table(comparison);
  if (!table.rows.empty()) return section_html(kComparison, "Recipe fields that differ", table_html(table));
  std::string content;
  for (const auto& note : table.notes) content += paragraph_html(note);
  return section_html(kComparison, "Recipe fields that differ",
                      content.empty() ? paragraph_html("None, apart from names and seeds.") : content);
}

}  // namespace prism
