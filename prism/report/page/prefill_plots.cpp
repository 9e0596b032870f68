#include "prism/report/page/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

/// The distinct names of the rows, in order.
template <class Row, class Name>
std::vector<std::string> distinct(const std::vector<Row>& rows, const Name& name_of) {
  std::vector<std::string> names;
  for (const auto& row : rows)
    if (const auto name = name_of(row); std::find(names.begin(), names.end(), name) == names.end())
      names.push_back(name);
  return names;
}

/// A figure over density.
template <class Row>
struct DensityFigure {
  std::string id, description;
  const char* label;
  NumberStyle style;
  std::function<double(const Row&)> value;  ///< NaN if the row has none
  bool is_logarithmic = false;              ///< leaves out values that are not above 0
};

/// Lines over density, in ascending order.
template <class Row>
Plot density_plot(const DensityFigure<Row>& figure, const std::vector<std::string>& names,
                  const std::vector<Row>& rows) {
  Plot plot{.id = figure.id,
            .description = figure.description,
            .x = {.label = "density: share of the visible blocks that is kept", .low = 0, .high = 1}};
  Extent extent;
  bool has_line = false;
  for (size_t s = 0; s < names.size(); ++s) {
    PlotSeries line{.style = PlotStyle::kPoints, .series = static_cast<int>(s), .points = {}};
    for (const auto& row : rows) {
      const double value = figure.value(row);
      const double y = figure.is_logarithmic ? std::log10(value) : value;
      if (row.method.series != names[s] || !std::isfinite(y)) continue;
      line.points.push_back(
          {.x = row.density,
           .y = y,
           .text = fmt::format("{}: density {}, {} {}", row.method.text, number_text(row.density, kDensityNumber),
                               figure.label, number_text(value, figure.style))});
      extent.add(y);
    }
    std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    has_line = has_line || line.points.size() > 1;
    if (!line.points.empty()) plot.series.push_back(std::move(line));
  }
  if (!has_line) plot.series.clear();
  plot.y = figure.is_logarithmic ? logarithmic_axis(figure.label, extent) : axis_over(figure.label, extent);
  return plot;
}

/// Perplexity above that of dense attention, of one setup; perplexity itself if dense attention was not measured.
DensityFigure<PrefillLoss> perplexity_figure(const std::string& id, const PrefillRecords& records,
                                             const std::string& setup) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const double dense = records.dense_perplexity(setup);
  if (dense == 0)
    return {id, "Perplexity over density, " + setup, "perplexity", kPerplexityNumber,
            [=](const PrefillLoss& row) { return row.setup == setup ? row.perplexity : nothing; }};
  return {id,
          "Perplexity above that of dense attention over density (points at or below it are not drawn), " + setup,
          "perplexity above dense attention's, %",
          kIncreaseNumber,
          [=](const PrefillLoss& row) {
            return row.setup == setup && row.perplexity > dense ? 100 * (row.perplexity / dense - 1) : nothing;
          },
          true};
}

/// A figure over the length of prompts.
struct LengthFigure {
  const char* id;
  const char* description;
  const char* label;
  NumberStyle style;
  double (*of)(const PrefillSpeed&);  ///< 0 if not measured
  bool has_dense = false;             ///< also draws dense attention and LibTorch's
};

constexpr LengthFigure kLengthFigures[] = {
    {"prefill-times", "Time of choosing blocks and of attention over the length of the prompt, ",
     "ms for choosing and attention", kMillisecondsNumber,
     [](const PrefillSpeed& row) { return row.select_ms + row.attend_ms; }, true},
    {"prefill-choosing", "Time of choosing blocks over the length of the prompt, ", "ms for choosing",
     kMillisecondsNumber, [](const PrefillSpeed& row) { return row.select_ms; }},
    {"prefill-memory", "Peak memory of choosing blocks over the length of the prompt, ", "MiB for choosing",
     kMebibytesNumber, [](const PrefillSpeed& row) { return row.select_mib.value_or(0); }}};

/// Adds a line if it has two points or more. @param values  by tokens, above 0.
void add_length_line(LabelledPlot& all, const LengthFigure& figure, size_t series,
                     const std::map<int64_t, double>& values) {
  if (values.size() < 2) return;
  auto& line = all.plot.series.emplace_back();
  line.style = PlotStyle::kPoints;
  line.series = static_cast<int>(series);
  for (const auto& [tokens, value] : values)
    line.points.push_back({.x = std::log2(static_cast<double>(tokens)),
                           .y = std::log10(value),
                           .text = fmt::format("{}: {} tokens, {} {}", all.labels[series], grouped(tokens),
                                               figure.label, number_text(value, figure.style))});
}

/// The figure for one kind of heads; without lines if no selector was measured at two lengths. Where one was measured
/// several times at a length, the last counts.
LabelledPlot length_plot(const LengthFigure& figure, const std::vector<PrefillSpeed>& rows) {
  const auto name_of = [](const PrefillSpeed& row) { return row.method.text; };
  const auto add = [](std::map<int64_t, double>& values, int64_t tokens, double value) {
    if (value > 0) values[tokens] = value;
  };
  LabelledPlot all{.plot = {.id = figure.id, .description = figure.description + rows.front().heads},
                   .labels = distinct(rows, name_of)};
  const size_t selectors = all.labels.size();
  for (size_t s = 0; s < selectors; ++s) {
    std::map<int64_t, double> values;
    for (const auto& row : rows)
      if (name_of(row) == all.labels[s]) add(values, row.tokens, figure.of(row));
    add_length_line(all, figure, s, values);
  }
  if (all.plot.series.empty()) return all;
  if (figure.has_dense) {
    std::map<int64_t, double> dense, torch;
    for (const auto& row : rows) {
      add(dense, row.tokens, row.dense_ms);
      add(torch, row.tokens, row.sdpa_ms);
    }
    all.labels.insert(all.labels.end(), {"dense attention", "LibTorch's dense attention"});
    add_length_line(all, figure, selectors, dense);
    add_length_line(all, figure, selectors + 1, torch);
  }
  Extent lengths, values;
  std::set<double> ticks;
  for (const auto& line : all.plot.series)
    for (const auto& point : line.points) {
      lengths.add(point.x);
      values.add(point.y);
      ticks.insert(point.x);
    }
  all.plot.y = logarithmic_axis(figure.label, values);
  all.plot.x = axis_over("length of the prompt, in units of 1,024 tokens", lengths);
  for (const double tick : ticks) all.plot.x.ticks.push_back({tick, std::exp2(tick) / 1024});
  return all;
}

}  // namespace

std::vector<LabelledPlot> prefill_plots(const PrefillRecords& records) {
  const double nothing = std::numeric_limits<double>::quiet_NaN();
  const auto names = records.series();
  std::vector<Plot> plots;
  const auto setups = distinct(records.losses, [](const PrefillLoss& row) { return row.setup; });
  const auto id_of = [](const char* id, size_t i) { return i == 0 ? id : fmt::format("{}-{}", id, i + 1); };
  for (size_t i = 0; i < setups.size(); ++i) {
    plots.push_back(
        density_plot(perplexity_figure(id_of("prefill-perplexity", i), records, setups[i]), names, records.losses));
    plots.push_back(
        density_plot<PrefillLoss>({id_of("prefill-answers", i), "Distant answers over density, " + setups[i],
                                   "right distant answers, %", kAnswersNumber,
                                   [&](const PrefillLoss& row) {
                                     return row.setup == setups[i] ? row.distant_answers.value_or(nothing) : nothing;
                                   }},
                                  names, records.losses));
  }
  const auto prompt_of = [](const PrefillSpeed& row) {
    return fmt::format("{}, {} tokens", row.heads, grouped(row.tokens));
  };
  const auto prompts = distinct(records.speeds, prompt_of);
  for (size_t i = 0; i < prompts.size(); ++i)
    plots.push_back(density_plot<PrefillSpeed>(
        {fmt::format("prefill-recall-{}", i + 1), "Recall over density, " + prompts[i], "recall", kRecallNumber,
         [&](const PrefillSpeed& row) {
           return prompt_of(row) == prompts[i] && row.recall > 0 ? row.recall : nothing;
         }},
        names, records.speeds));
  std::vector<LabelledPlot> labelled;
  for (auto& plot : plots) labelled.push_back({std::move(plot), names});
  const auto kinds = distinct(records.speeds, [](const PrefillSpeed& row) { return row.heads; });
  for (size_t i = 0; i < kinds.size(); ++i) {
    std::vector<PrefillSpeed> rows;
    std::copy_if(records.speeds.begin(), records.speeds.end(), std::back_inserter(rows),
                 [&](const PrefillSpeed& row) { return row.heads == kinds[i]; });
    for (const auto& figure : kLengthFigures) {
      labelled.push_back(length_plot(figure, rows));
      labelled.back().plot.id = id_of(figure.id, i);
    }
  }
  std::erase_if(labelled, [](const LabelledPlot& each) { return each.plot.series.empty(); });
  return labelled;
}

}  // namespace prism
