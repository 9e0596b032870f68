#include "prism/report/page/page.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/text/names.h"
#include "prism/report/draw/escape.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/draw/schedule_picture.h"
#include "prism/report/draw/series.h"
#include "prism/report/page/diagnostics.h"
#include "prism/report/page/figures.h"
#include "prism/report/page/measured_tables.h"
#include "prism/report/page/page_script.h"
#include "prism/report/page/page_style.h"
#include "prism/report/page/setup_tables.h"
#include "prism/report/page/summary.h"

namespace prism {
namespace {

/// In addition to escaping: the page may load nothing and run only its own script, whatever a name or a sample
/// contains.
std::string content_policy() {
  return fmt::format(
      "default-src 'none'; style-src 'unsafe-inline'; script-src '{}'; base-uri 'none'; form-action 'none'",
      kPageScriptHash);
}

/// A longer table is collapsed above the tabs. More pictures would make the page too large for browsers.
constexpr size_t kMostOpenRows = 40, kMostPictures = 48;

/// Hidden until the script shows it, since it is only true with the script.
constexpr const char* kHint =
    "<p class=\"note hint\" hidden>Point at a plot to see its values, or move to it with the Tab key and use the arrow "
    "keys. Click a name to hide or show it in all plots.</p>\n";

std::string page_title(const Comparison& comparison, const ReportOptions& options) {
  if (!options.title.empty()) return options.title;
  const auto labels = labels_of(comparison.groups);
  if (labels.size() == 1) return "Training run " + labels.front();
  if (labels.size() <= 3) return "Comparison of " + join_names(labels);
  return fmt::format("Comparison of {} models", labels.size());
}

std::string records_title(const ReportOptions& options) {
  if (!options.title.empty()) return options.title;
  return options.prefill.empty() ? "Analyses of models" : "Sparse prompts";
}

std::string paragraph(const std::string& text, const char* style = "") {
  return fmt::format("<p{}>{}</p>\n", *style ? fmt::format(" class=\"{}\"", style) : "", escape_html(text));
}

/// The tabs. The script shows the sections of one tab at a time; sections without a tab are always visible.
constexpr const char *kNoTab = "", *kTraining = "Training", *kComparison = "Comparison", *kDiagnostics = "Diagnostics",
                     *kAttention = "Attention", *kSparsity = "Sparsity";

std::string section(const char* tab, const char* heading, const std::string& content) {
  if (content.empty()) return "";
  return fmt::format("<section{}>\n<h2>{}</h2>\n{}</section>\n", *tab ? fmt::format(" data-tab=\"{}\"", tab) : "",
                     heading, content);
}

std::string details(const std::string& content, const std::string& summary) {
  return fmt::format("<details>\n<summary>{}</summary>\n{}</details>\n", escape_html(summary), content);
}

std::string labelled_key(const Comparison& comparison, size_t group) {
  return series_key_svg(static_cast<int>(group)) + "<bdi>" + escape_html(comparison.groups[group].label) + "</bdi>";
}

/// The names with their lines and markers. The script makes them switches.
std::string legend_html(const Comparison& comparison) {
  std::string list = "<ul class=\"legend\">\n";
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    list += fmt::format("<li data-series=\"{}\">{}</li>\n", i, labelled_key(comparison, i));
  }
  return list + "</ul>\n";
}

/// The page up to the first section.
std::string page_head(const std::string& title, const std::string& lead) {
  std::string page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n";
  page += fmt::format("<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n", content_policy());
  page += "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n";
  page += fmt::format("<title>{}</title>\n<style>{}{}{}</style>\n</head>\n<body>\n", escape_html(title), kPageColours,
                      kHeatMapStyle, kPageStyle);
  return page + fmt::format("<header>\n<h1>{}</h1>\n{}</header>\n<main>\n", escape_html(title),
                            lead.empty() ? "" : paragraph(lead, "lead"));
}

/// Numbered figures with captions. A plot without data or without gnuplot is replaced by a sentence.
class FigureWriter {
 public:
  FigureWriter(const ReportOptions& options, std::vector<std::string>* problems)
      : options_(options), problems_(problems) {}

  std::string figure(const Plot& plot, const std::string& title, const std::string& caption,
                     const std::string& nothing) {
    return fmt::format("<figure{}>\n{}<figcaption><b>Figure {}. {}</b> {}</figcaption>\n</figure>\n",
                       plot.series.empty() ? " class=\"empty\"" : "", drawing(plot, nothing), ++number_,
                       escape_html(title), escape_html(caption));
  }

  const std::vector<Plot>& drawn() const { return drawn_; }

 private:
  std::string drawing(const Plot& plot, const std::string& nothing) {
    if (plot.series.empty()) return paragraph(nothing, "missing");
    try {
      std::string svg = draw_plot(plot, options_.gnuplot);
      drawn_.push_back(plot);
      return svg;
    } catch (const FailedError& error) {
      if (std::find(problems_->begin(), problems_->end(), error.what()) == problems_->end()) {
        problems_->emplace_back(error.what());
      }
      return paragraph(error.what(), "missing");
    }
  }

  const ReportOptions& options_;
  std::vector<std::string>* problems_;
  std::vector<Plot> drawn_;
  int number_ = 0;
};

std::string figures(const std::string& content) {
  return "<div class=\"figures\">\n" + content + "</div>\n";
}

/// A table that unfolds from its summary; empty for a table without rows.
std::string table_details(const Table& table, const std::string& summary) {
  return table.rows.empty() ? "" : details(table_html(table), summary);
}

std::string band_text(const Comparison& comparison) {
  return has_seeds(comparison)
             ? " The line is the mean over seeds, the band one sample standard deviation to either side."
             : "";
}

std::string train_caption(const Comparison& comparison, const Plot& plot) {
  std::string text = "Mean over a centred window of a twentieth of the run";
  if (has_seeds(comparison)) text += shows_mean_training(comparison) ? " and over seeds" : ", one line for each seed";
  const auto faint = [](const PlotSeries& series) { return series.style == PlotStyle::kFaint; };
  if (std::any_of(plot.series.begin(), plot.series.end(), faint)) text += "; the recorded values are faint";
  return text + (cuts_first_part(comparison) ? ". The first, steep part lies above the scale." : ".");
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
  const auto& figure = comparison.figure;
  std::string content =
      writer.figure(difference_plot(comparison), "Difference in validation " + figure.noun(),
                    fmt::format("Validation {} minus that of {} after equal numbers of tokens; {} zero is better.{}",
                                figure.noun(), baseline, figure.less_is_better ? "below" : "above", band),
                    nothing);
  return content + writer.figure(forest_plot(comparison), "Final difference of each run",
                                 fmt::format("The last difference of figure 3; {} of zero is better than {}.{}",
                                             figure.less_is_better ? "left" : "right", baseline, bars),
                                 nothing);
}

std::string loss_section(const Comparison& comparison, FigureWriter& writer) {
  const Plot train = train_plot(comparison);
  std::string content = writer.figure(train, "Training loss", train_caption(comparison, train),
                                      "No training loss has been recorded yet.");
  const auto& figure = comparison.figure;
  content += writer.figure(valid_plot(comparison), "Validation " + figure.noun(),
                           (figure.is_loss() ? "On the scale of figure 1." : "") + band_text(comparison),
                           fmt::format("No validation {} has been recorded yet.", figure.noun()));
  if (comparison.groups.size() > 1) content += difference_figures(comparison, writer);
  return section(kTraining, "Loss against tokens",
                 legend_html(comparison) + kHint + figures(content) +
                     table_details(validation_table(comparison), figure.is_loss() ? "The validation losses in numbers"
                                                                                  : "The validations in numbers") +
                     table_details(difference_table(comparison), "Their differences in numbers"));
}

std::string pareto_caption(const Comparison& comparison, const Plot& plot) {
  std::string text =
      fmt::format("{} and further right is better. ", comparison.figure.less_is_better ? "Lower" : "Higher") +
      front_text(comparison);
  const auto joins = [](const PlotSeries& series) { return series.style == PlotStyle::kGuide; };
  if (std::any_of(plot.series.begin(), plot.series.end(), joins)) text += " The dashed line joins them.";
  if (has_seeds(comparison)) text += " Marks are means over seeds, bars one sample standard deviation to either side.";
  return text;
}

std::string cost_section(const Comparison& comparison, FigureWriter& writer) {
  const Plot plot = pareto_plot(comparison);
  std::string content;
  if (!plot.series.empty()) {
    content = legend_html(comparison) +
              figures(writer.figure(plot, fmt::format("Final validation {} against rate", comparison.figure.noun()),
                                    pareto_caption(comparison, plot), ""));
  }
  const Table reach = reach_table(comparison);
  if (!reach.rows.empty()) content += "<h3>" + escape_html(reach.caption) + "</h3>\n" + table_html(reach);
  return section(kComparison, "Loss against cost", content);
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
  return section(kAttention, "Attention distance",
                 legend_html(comparison) + figures(content) + (stretches.rows.empty() ? "" : table_html(stretches)) +
                     table_details(distance_table(comparison), "The distances in numbers") +
                     table_details(distance_difference_table(comparison), "Their differences in numbers"));
}

std::string text_section(const Comparison& comparison) {
  const Table table = text_loss_table(comparison);
  return table.rows.empty() ? "" : section(kComparison, "Loss on whole texts", table_html(table));
}

std::string prefill_section(const PrefillRecords& records, const char* heading = "Sparse prompts") {
  std::string content;
  for (const Table& table : prefill_tables(records))
    content += "<h3>" + escape_html(table.caption) + "</h3>\n" + table_html(table);
  return section(kSparsity, heading, content);
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
  if (!plots.empty()) content += legend_html(comparison) + figures(drawings);
  content += table_details(diagnostics_table(comparison), "The layers in numbers");
  for (const Table& table : parameter_tables(comparison)) content += table_details(table, table.caption);
  return section(kDiagnostics, "Diagnostics", content);
}

/// Plots that belong to no run, each with its own key.
std::string plots_with_keys(const std::vector<Plot>& plots, const std::vector<std::string>& labels,
                            const std::string& gnuplot, std::vector<std::string>* problems) {
  std::string drawings;
  try {
    for (const Plot& plot : plots)
      drawings += fmt::format("<figure>\n{}<figcaption>{}.</figcaption>\n</figure>\n", plot_file(plot, labels, gnuplot),
                              escape_html(plot.description));
    return drawings;
  } catch (const FailedError& error) {
    problems->emplace_back(error.what());
    return paragraph(error.what(), "missing");
  }
}

/// Tables and pictures of prism analyse.
std::string analysis_section(const ReportOptions& options, std::vector<std::string>* problems) {
  const auto& records = options.analysis;
  std::string content,
      drawings = plots_with_keys(analysis_plots(records), records.plotted(), options.gnuplot, problems);
  for (const Table& table : analysis_tables(records))
    content += "<h3>" + escape_html(table.caption) + "</h3>\n" + table_html(table);
  const auto pictures = analysis_pictures(records);
  for (size_t i = 0; i < std::min(pictures.size(), kMostPictures); ++i)
    drawings +=
        fmt::format("<figure{}>\n{}<figcaption><b>{}</b> Input: {}.</figcaption>\n</figure>\n",
                    pictures[i].map.columns.size() > kWideHeatMap ? " class=\"wide\"" : "",
                    heat_map_svg(pictures[i].map), escape_html(pictures[i].title), escape_html(pictures[i].reading));
  if (!drawings.empty()) content += figures(drawings);
  if (pictures.size() > kMostPictures)
    content += paragraph(fmt::format("{} more pictures are left out; prism analyse --figures writes them as files.",
                                     pictures.size() - kMostPictures));
  return section(kAttention, "Inside models", content);
}

/// The script and its data. They are at the end, where all elements they refer to exist.
std::string script_html(const Comparison& comparison, const FigureWriter& writer) {
  return fmt::format("<script type=\"application/json\" id=\"plot-data\">{}</script>\n<script>{}</script>\n",
                     plot_data(labels_of(comparison.groups), writer.drawn()), kPageScript);
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

/// A picture for each distinct schedule, with the labels of all groups that have it.
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
  std::string content = paragraph(
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
  return section(kAttention, "Head schedules", content + "</div>\n");
}

struct ShownSample {
  const Run* run;
  const RunSample* sample;
};

/// For a prompt, the last sample at each temperature, from the group's first run that has any.
std::vector<ShownSample> last_samples(const RunGroup& group, const std::string& prompt) {
  for (const auto& run : group.runs) {
    std::map<std::optional<double>, ShownSample> last;
    for (const auto& sample : run.samples)
      if (sample.prompt == prompt) last.insert_or_assign(sample.temperature, ShownSample{&run, &sample});
    if (last.empty()) continue;
    std::vector<ShownSample> shown;
    for (const auto& [temperature, sample] : last) shown.push_back(sample);
    return shown;
  }
  return {};
}

std::vector<std::string> prompts_of(const Comparison& comparison) {
  std::vector<std::string> prompts;
  for (const auto& group : comparison.groups) {
    for (const auto& run : group.runs) {
      for (const auto& sample : run.samples) {
        if (std::find(prompts.begin(), prompts.end(), sample.prompt) == prompts.end()) prompts.push_back(sample.prompt);
      }
    }
  }
  return prompts;
}

/// ", seed 1, after 4.0M tokens, temperature 0.8".
std::string sample_origin(const RunGroup& group, const ShownSample& shown) {
  const std::string seed = group.runs.size() > 1 && shown.run->seed ? fmt::format(", seed {}", *shown.run->seed) : "";
  const auto& temperature = shown.sample->temperature;
  return fmt::format("{}, after {} tokens{}", seed, short_number(static_cast<double>(shown.sample->tokens)),
                     temperature ? fmt::format(", temperature {}", *temperature) : "");
}

std::string sample_html(const Comparison& comparison, size_t group, const ShownSample& shown) {
  const std::string origin = sample_origin(comparison.groups[group], shown);
  return fmt::format(
      "<article class=\"sample\">\n<header>{}{}</header>\n<p dir=\"auto\"><span "
      "class=\"prompt\">{}</span>{}</p>\n</article>\n",
      labelled_key(comparison, group), escape_html(origin), escape_html(shown.sample->prompt),
      escape_html(shown.sample->text));
}

std::string samples_section(const Comparison& comparison) {
  std::string content;
  const auto prompts = prompts_of(comparison);
  for (size_t i = 0; i < prompts.size(); ++i) {
    content += fmt::format("<h3>Prompt {}</h3>\n<div class=\"samples\">\n", i + 1);
    for (size_t group = 0; group < comparison.groups.size(); ++group) {
      for (const auto& shown : last_samples(comparison.groups[group], prompts[i]))
        content += sample_html(comparison, group, shown);
    }
    content += "</div>\n";
  }
  return section(kTraining, "Samples", content);
}

std::string recipe_section(const Comparison& comparison) {
  if (comparison.groups.size() < 2) return {};
  const Table table = recipe_table(comparison);
  if (!table.rows.empty()) return section(kComparison, "Recipe fields that differ", table_html(table));
  std::string content;
  for (const auto& note : table.notes) content += paragraph(note);
  return section(kComparison, "Recipe fields that differ",
                 content.empty() ? paragraph("None, apart from names and seeds.") : content);
}

std::string figure_file_name(const Plot& plot) {
  return plot.id + ".svg";
}

/// @param folder  the folder of the figures, relative to the document.
std::string markdown_figures(const std::vector<Plot>& plots, const std::string& folder) {
  std::string text;
  for (const Plot& plot : plots) {
    const auto file = (std::filesystem::path(folder) / figure_file_name(plot)).generic_string();
    const std::string words = escape_markdown(plot.description);
    text += fmt::format("![{}](<{}>)\n\n{}.\n\n", words, file, words);
  }
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

std::string markdown_samples(const Comparison& comparison) {
  std::string text;
  for (const auto& prompt : prompts_of(comparison)) {
    for (const auto& group : comparison.groups) {
      for (const auto& shown : last_samples(group, prompt))
        text += fmt::format("{}{}:\n\n{}\n", escape_markdown(group.label), sample_origin(group, shown),
                            markdown_code_block(prompt + shown.sample->text));
    }
  }
  return text.empty() ? "" : "## Samples\n\n" + text;
}

/// Sparse prompts and analyses.
std::string records_text(const ReportOptions& options) {
  std::string text;
  if (!options.figures.empty()) text += markdown_figures(prefill_plots(options.prefill), options.figures);
  text += markdown_tables(prefill_tables(options.prefill));
  text += markdown_tables(analysis_tables(options.analysis));
  if (options.figures.empty()) return text;
  text += markdown_figures(analysis_plots(options.analysis), options.figures);
  for (const auto& picture : analysis_pictures(options.analysis)) {
    const auto file = (std::filesystem::path(options.figures) / (picture.name + ".svg")).generic_string();
    text += fmt::format("![{0}](<{1}>)\n\n{0}.\n\n", escape_markdown(picture.title), file);
  }
  return text;
}

}  // namespace

std::string report_html(const Comparison& comparison, const ReportOptions& options,
                        std::vector<std::string>* problems) {
  const std::string title = page_title(comparison, options);
  FigureWriter writer(options, problems);
  std::string page = page_head(title, headline(comparison));
  const Table table = results_table(comparison);
  std::string results = table.rows.size() > kMostOpenRows
                            ? table_details(table, fmt::format("Results of all {} groups", table.rows.size()))
                            : table_html(table);
  for (const auto& remark : comparison.remarks) results += paragraph(remark, "note");
  page += section(kNoTab, "Results", results);
  page += loss_section(comparison, writer);
  page += cost_section(comparison, writer);
  page += text_section(comparison);
  page += diagnostics_section(comparison, writer);
  page += distance_section(comparison, writer);
  page += schedule_section(comparison);
  page += analysis_section(options, problems);
  page += prefill_section(options.prefill);
  page += samples_section(comparison);
  page += recipe_section(comparison);
  page += section(kComparison, "Machine", table_html(machine_table(comparison)));
  page += section(kComparison, "Runs", table_html(runs_table(comparison)));
  page += "</main>\n<footer>Written by prism report from records.jsonl and recipe.json of each run.</footer>\n";
  return page + script_html(comparison, writer) + "</body>\n</html>\n";
}

std::vector<FigureFile> report_figures(const Comparison& comparison, const ReportOptions& options) {
  std::vector<FigureFile> files;
  for (const Plot& plot : report_plots(comparison))
    files.push_back({figure_file_name(plot), plot_file(plot, labels_of(comparison.groups), options.gnuplot)});
  for (const Plot& plot : diagnostics_plots(comparison))
    files.push_back({figure_file_name(plot), plot_file(plot, labels_of(comparison.groups), options.gnuplot)});
  for (auto& file : records_figures(options)) files.push_back(std::move(file));
  return files;
}

std::string report_markdown(const Comparison& comparison, const ReportOptions& options) {
  std::string text = "# " + escape_markdown(page_title(comparison, options)) + "\n\n";
  text += escape_markdown(headline(comparison)) + "\n\n" + table_markdown(results_table(comparison)) + "\n";
  for (const auto& remark : comparison.remarks) text += escape_markdown(remark) + "\n\n";
  if (!options.figures.empty()) text += markdown_figures(report_plots(comparison), options.figures);
  text += markdown_tables({validation_table(comparison), difference_table(comparison), reach_table(comparison)});
  if (const std::string front = front_text(comparison); !front.empty()) text += escape_markdown(front) + "\n\n";
  text +=
      markdown_tables({text_loss_table(comparison), distance_table(comparison), distance_difference_table(comparison),
                       distance_stretch_table(comparison), schedule_table(comparison)});
  if (!options.figures.empty()) text += markdown_figures(diagnostics_plots(comparison), options.figures);
  text += markdown_tables({warnings_table(comparison), diagnostics_table(comparison)});
  text += records_text(options) + markdown_samples(comparison);
  if (comparison.groups.size() > 1) text += markdown_tables({recipe_table(comparison)});
  return text + table_markdown(machine_table(comparison)) + "\n" + table_markdown(runs_table(comparison));
}

std::string records_html(const ReportOptions& options, std::vector<std::string>* problems) {
  std::string page = page_head(records_title(options), "") + prefill_section(options.prefill, "Tables");
  const auto drawings =
      plots_with_keys(prefill_plots(options.prefill), options.prefill.series(), options.gnuplot, problems);
  page += section(kSparsity, "Figures", drawings.empty() ? "" : figures(drawings));
  page += analysis_section(options, problems);
  return page + "</main>\n<footer>Written by prism report.</footer>\n</body>\n</html>\n";
}

std::vector<FigureFile> records_figures(const ReportOptions& options) {
  std::vector<FigureFile> files;
  for (const Plot& plot : prefill_plots(options.prefill))
    files.push_back({figure_file_name(plot), plot_file(plot, options.prefill.series(), options.gnuplot)});
  for (const Plot& plot : analysis_plots(options.analysis))
    files.push_back({figure_file_name(plot), plot_file(plot, options.analysis.plotted(), options.gnuplot)});
  for (const auto& picture : analysis_pictures(options.analysis))
    files.push_back({picture.name + ".svg", heat_map_file(picture.map)});
  return files;
}

std::string records_markdown(const ReportOptions& options) {
  std::string text = "# " + escape_markdown(records_title(options)) + "\n\n";
  return text + records_text(options);
}

}  // namespace prism
