#include "prism/report/page/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <limits>
#include <map>
#include <utility>

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

/// Widens an axis to include a value.
void hold(PlotAxis& axis, double value) {
  axis.low = std::min(axis.low, value);
  axis.high = std::max(axis.high, value);
}

/// Lines over density, in ascending order. @param value  of a row; NaN if it has none.
template <class Row>
Plot density_plot(const std::string& id, const std::string& description, const char* label, NumberStyle style,
                  const std::vector<std::string>& names, const std::vector<Row>& rows,
                  const std::function<double(const Row&)>& value) {
  Plot plot{
      .id = id,
      .description = description,
      .x = {.label = "density: share of the visible blocks that is kept", .low = 0, .high = 1},
      .y = {.label = label, .low = std::numeric_limits<double>::max(), .high = std::numeric_limits<double>::lowest()}};
  bool has_line = false;
  for (size_t s = 0; s < names.size(); ++s) {
    PlotSeries line{.style = PlotStyle::kPoints, .series = static_cast<int>(s), .points = {}};
    for (const auto& row : rows) {
      const double y = value(row);
      if (row.method.series != names[s] || !std::isfinite(y)) continue;
      line.points.push_back(
          {.x = row.density,
           .y = y,
           .text = fmt::format("{}: density {}, {} {}", row.method.text, number_text(row.density, kDensityNumber),
                               label, number_text(y, style))});
      hold(plot.y, y);
    }
    std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    has_line = has_line || line.points.size() > 1;
    if (!line.points.empty()) plot.series.push_back(std::move(line));
  }
  if (!has_line) plot.series.clear();
  const double margin = 0.04 * (plot.y.high - plot.y.low) + 1e-3 * std::max(1.0, std::abs(plot.y.high));
  plot.y.low -= margin;
  plot.y.high += margin;
  return plot;
}

/// An axis of logarithms, with numbers at powers of ten, and between them where there are few.
PlotAxis logarithmic_axis(const char* label, double least, double most) {
  const double low = std::log10(least), high = std::log10(most);
  const double half = std::max(0.54 * (high - low), 0.2);  // at least one of 1, 2, 5 times a power of ten is inside
  PlotAxis axis{.label = label, .low = (low + high) / 2 - half, .high = (low + high) / 2 + half};
  constexpr double kFewDecades = 2;
  for (double power = std::floor(axis.low); power <= axis.high; ++power)
    for (const double factor : {1, 2, 5}) {
      const double position = power + std::log10(factor);
      const bool is_named = factor == 1 || axis.high - axis.low < kFewDecades;
      if (is_named && position >= axis.low && position <= axis.high)
        axis.ticks.push_back({position, factor * std::pow(10, power)});
    }
  return axis;
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
     "choosing and attention, ms", kMillisecondsNumber,
     [](const PrefillSpeed& row) { return row.select_ms + row.attend_ms; }, true},
    {"prefill-choosing", "Time of choosing blocks over the length of the prompt, ", "choosing, ms", kMillisecondsNumber,
     [](const PrefillSpeed& row) { return row.select_ms; }},
    {"prefill-memory", "Peak memory of choosing blocks over the length of the prompt, ", "choosing, MiB",
     kMebibytesNumber, [](const PrefillSpeed& row) { return row.select_mib; }}};

/// Adds a line with a name of its own if it has two points or more. @param values  by tokens; those of 0 are left out.
void add_length_line(LabelledPlot& all, const std::string& name, const std::map<int64_t, double>& values,
                     NumberStyle style) {
  PlotSeries line{.style = PlotStyle::kPoints, .series = static_cast<int>(all.labels.size()), .points = {}};
  for (const auto& [tokens, value] : values)
    if (value > 0)
      line.points.push_back(
          {.x = std::log2(static_cast<double>(tokens)),
           .y = std::log10(value),
           .text = fmt::format("{}: {} tokens, {}", name, grouped(tokens), number_text(value, style))});
  if (line.points.size() < 2) return;
  all.plot.series.push_back(std::move(line));
  all.labels.push_back(name);
}

/// The figure for one kind of heads; without lines if no selector has two lengths.
LabelledPlot length_plot(const LengthFigure& figure, const std::vector<PrefillSpeed>& rows) {
  std::map<int64_t, double> dense, torch;
  double least = std::numeric_limits<double>::max(), most = 0;
  LabelledPlot all{.plot = {.id = figure.id, .description = figure.description + rows.front().heads}, .labels = {}};
  for (const auto& name : distinct(rows, [](const PrefillSpeed& row) { return row.method.text; })) {
    std::map<int64_t, double> values;
    for (const auto& row : rows)
      if (row.method.text == name) values[row.tokens] = figure.of(row);
    add_length_line(all, name, values, figure.style);
  }
  if (all.plot.series.empty()) return all;
  for (const auto& row : rows) {
    dense[row.tokens] = row.dense_ms;
    torch[row.tokens] = row.sdpa_ms;
  }
  if (figure.has_dense) {
    add_length_line(all, "dense attention", dense, figure.style);
    add_length_line(all, "LibTorch's dense attention", torch, figure.style);
  }
  for (const auto& line : all.plot.series)
    for (const auto& point : line.points) {
      least = std::min(least, std::pow(10, point.y));
      most = std::max(most, std::pow(10, point.y));
    }
  all.plot.y = logarithmic_axis(figure.label, least, most);
  all.plot.x = {.label = "length of the prompt, 1,024 tokens",
                .low = std::log2(static_cast<double>(dense.begin()->first)) - 0.1,
                .high = std::log2(static_cast<double>(dense.rbegin()->first)) + 0.1};
  for (const auto& [tokens, time] : dense)
    all.plot.x.ticks.push_back({std::log2(static_cast<double>(tokens)), static_cast<double>(tokens) / 1024});
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
    plots.push_back(density_plot<PrefillLoss>(
        id_of("prefill-perplexity", i), "Perplexity over density, " + setups[i], "perplexity", kPerplexityNumber, names,
        records.losses, [&](const PrefillLoss& row) { return row.setup == setups[i] ? row.perplexity : nothing; }));
    plots.push_back(density_plot<PrefillLoss>(
        id_of("prefill-answers", i), "Distant answers over density, " + setups[i], "right distant answers, %",
        kAnswersNumber, names, records.losses, [&](const PrefillLoss& row) {
          return row.setup == setups[i] ? row.distant_answers.value_or(nothing) : nothing;
        }));
  }
  const auto prompt_of = [](const PrefillSpeed& row) {
    return fmt::format("{}, {} tokens", row.heads, grouped(row.tokens));
  };
  const auto prompts = distinct(records.speeds, prompt_of);
  for (size_t i = 0; i < prompts.size(); ++i)
    plots.push_back(
        density_plot<PrefillSpeed>(fmt::format("prefill-recall-{}", i + 1), "Recall over density, " + prompts[i],
                                   "recall", kRecallNumber, names, records.speeds, [&](const PrefillSpeed& row) {
                                     return prompt_of(row) == prompts[i] && row.recall > 0 ? row.recall : nothing;
                                   }));
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
