#include "prism/report/page/diagnostics.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <utility>

#include "prism/core/statistics.h"
#include "prism/core/text/names.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

/// With more groups, the tables would be too long for a page.
constexpr size_t kMostParameterTables = 12;
constexpr NumberStyle kEntropyStyle = {3, false}, kNormStyle = {3, false}, kShareStyle = {1, false};

struct Quantity {
  const char *id, *title, *unit, *caption;
  /// The value in one record; NaN if there is none.
  double (*of)(const RunDiagnostics&);
};

/// Quantities plotted over the training.
const Quantity kCurves[] = {
    {"entropy-curve", "Attention entropy", "nats",
     "Mean over layers, heads and queries. Near 0, heads attend to single tokens.",
     [](const RunDiagnostics& at) { return mean_of(at.entropy); }},
    {"residual-curve", "Residual stream", "root mean square",
     "The input of the head, before its norm. A curve that bends upwards is a sign of divergence.",
     [](const RunDiagnostics& at) { return at.residual_rms.empty() ? NAN : at.residual_rms.back(); }},
    {"update-curve", "Updates", "update / values",
     "Norm of a step's change over the norm of the values; the median over parameters.",
     [](const RunDiagnostics& at) { return at.update; }},
    {"step-curve", "Time of a step", "ms", "The steps with diagnostics, without the time of the diagnostics.",
     [](const RunDiagnostics& at) { return at.step_ms; }}};

struct LayerQuantity {
  const char *id, *title, *unit, *caption;
  const std::vector<double>& (*of)(const RunDiagnostics&);
};

/// Quantities plotted over layers.
const LayerQuantity kLayers[] = {
    {"entropy-layers", "Attention entropy by layer", "nats",
     "Last recorded value of each layer; mean over heads and queries.",
     [](const RunDiagnostics& at) -> const std::vector<double>& { return at.entropy; }},
    {"residual-layers", "Residual stream by layer", "root mean square",
     "Last recorded value before each layer; the last point is the input of the head.",
     [](const RunDiagnostics& at) -> const std::vector<double>& { return at.residual_rms; }}};

/// The last diagnostics of a group's first run that has any; null if none has.
const RunDiagnostics* last_of(const RunGroup& group) {
  for (const auto& run : group.runs)
    if (!run.diagnostics.empty()) return &run.diagnostics.back();
  return nullptr;
}

/// The name of the module that reads the last residual stream.
const char* head_of(const RunGroup& group) {
  return group.runs.front().unit == TrainingUnit::tokens ? kHeadReader : "classification head";
}

/// The reader of the residual stream: a layer or the head.
std::string reader_of(const RunGroup& group, size_t layer) {
  const auto* last = last_of(group);
  return last != nullptr && layer >= last->entropy.size() ? head_of(group) : fmt::format("layer {}", layer);
}

/// A value over seeds as text.
std::string value_text(const Statistic& value) {
  const std::string mean = fmt::format("{:.4g}", value.mean);
  return value.count > 1 ? fmt::format("{} ± {:.2g}", mean, value.deviation) : mean;
}

std::vector<PlacedStatistic> curve_of(const RunGroup& group, const Quantity& quantity, const std::string& counted) {
  std::vector<std::vector<CurvePoint>> curves;
  for (const Run* run : counted_runs(group)) {
    std::vector<CurvePoint> curve;
    for (const auto& at : run->diagnostics)
      if (const double value = quantity.of(at); std::isfinite(value))
        curve.push_back({.trained = at.trained, .loss = value});
    if (!curve.empty()) curves.push_back(std::move(curve));
  }
  std::vector<const std::vector<CurvePoint>*> pointers;
  for (const auto& curve : curves) pointers.push_back(&curve);
  std::vector<PlacedStatistic> values;
  for (const auto& [trained, value] : curve_statistics(pointers))
    values.push_back({static_cast<double>(trained), value, trained_text(trained, counted) + value_text(value)});
  return values;
}

std::vector<PlacedStatistic> layers_of(const RunGroup& group, const LayerQuantity& quantity) {
  std::map<size_t, std::vector<double>> by_layer;
  for (const Run* run : counted_runs(group)) {
    if (run->diagnostics.empty()) continue;
    const auto& layers = quantity.of(run->diagnostics.back());
    for (size_t l = 0; l < layers.size(); ++l)
      if (std::isfinite(layers[l])) by_layer[l].push_back(layers[l]);
  }
  std::vector<PlacedStatistic> values;
  for (const auto& [layer, seeds] : by_layer) {
    const Statistic value = statistic(seeds);
    values.push_back(
        {static_cast<double>(layer), value, fmt::format("{}: {}", reader_of(group, layer), value_text(value))});
  }
  return values;
}

Plot plot_of(const Comparison& comparison, const char* id, const char* title, const char* unit,
             const std::function<std::vector<PlacedStatistic>(const RunGroup&)>& values_of, bool by_layer) {
  Plot plot{.id = id,
            .description = fmt::format("{}{} of {}", title,
                                       by_layer ? "" : fmt::format(" against trained {}", comparison.counted()),
                                       join_names(labels_of(comparison.groups)))};
  Extent extent;
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto values = values_of(comparison.groups[i]);
    for (const auto& value : values) extent.add(deviation_bar(value.value));
    add_statistics(plot, i, comparison.groups.size(), values);
  }
  if (plot.series.empty()) return plot;
  plot.x = by_layer ? layer_axis(plot) : training_axis(plot, comparison.counted());
  plot.y = axis_over(unit, extent);
  return plot;
}

/// Title and caption of a plot.
std::pair<const char*, const char*> words_of(const std::string& plot_id) {
  for (const auto& quantity : kCurves)
    if (plot_id == quantity.id) return {quantity.title, quantity.caption};
  for (const auto& quantity : kLayers)
    if (plot_id == quantity.id) return {quantity.title, quantity.caption};
  return {"", ""};
}

std::string cell_text(const std::vector<double>& values, size_t at, NumberStyle style, double unit = 1) {
  return at < values.size() && std::isfinite(values[at]) ? number_text(unit * values[at], style) : kNoValue;
}

}  // namespace

std::vector<Plot> diagnostics_plots(const Comparison& comparison) {
  std::vector<Plot> plots;
  for (const auto& quantity : kCurves)
    plots.push_back(plot_of(
        comparison, quantity.id, quantity.title, quantity.unit,
        [&](const RunGroup& group) { return curve_of(group, quantity, comparison.counted()); },
        /*by_layer=*/false));
  for (const auto& quantity : kLayers)
    plots.push_back(plot_of(
        comparison, quantity.id, quantity.title, quantity.unit,
        [&](const RunGroup& group) { return layers_of(group, quantity); },
        /*by_layer=*/true));
  std::erase_if(plots, [](const Plot& plot) { return plot.series.empty(); });
  return plots;
}

const char* diagnostics_title(const std::string& plot_id) {
  return words_of(plot_id).first;
}

const char* diagnostics_caption(const std::string& plot_id) {
  return words_of(plot_id).second;
}

Table diagnostics_table(const Comparison& comparison) {
  Table table{
      "Diagnostics by layer",
      {{"run"}, {"layer"}, {"residual stream", true}, {"dead units, %", true}, {"entropy", true}, {"of each head"}},
      {},
      {"Last recorded by the first run of each group. Entropy of attention in nats; root mean square of the residual "
       "stream before the layer; units that were 0 for every token. Layers count from 0; the head reads the stream "
       "after "
       "the last layer."}};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const RunDiagnostics* last = last_of(comparison.groups[i]);
    if (last == nullptr) continue;
    for (size_t l = 0; l < std::max(last->entropy.size(), last->residual_rms.size()); ++l)
      table.rows.push_back(
          {{.text = comparison.groups[i].label, .series = static_cast<int>(i)},
           {l < last->entropy.size() ? std::to_string(l) : head_of(comparison.groups[i])},
           {cell_text(last->residual_rms, l, kNormStyle)},
           {cell_text(last->dead_units, l, kShareStyle, 100)},
           {cell_text(last->entropy, l, kEntropyStyle)},
           {l < last->head_entropies.size() ? numbers_text(last->head_entropies[l], kEntropyStyle) : kNoValue}});
  }
  return table;
}

std::vector<Table> parameter_tables(const Comparison& comparison) {
  std::vector<Table> tables;
  for (const auto& group : comparison.groups) {
    const RunDiagnostics* last = last_of(group);
    if (last == nullptr || last->parameters.empty()) continue;
    if (tables.size() == kMostParameterTables) {
      tables.back().notes.push_back("For the parameters of another group, open a report of it: prism report RUN.");
      break;
    }
    Table& table =
        tables.emplace_back(Table{fmt::format("Parameters of {}, step {}", group.label, grouped(last->step)),
                                  {{"parameter"}, {"gradient", true}, {"values", true}, {"update / values", true}},
                                  {},
                                  {"Euclidean norms; the update is the change made by the optimizer."}});
    for (const auto& parameter : last->parameters)
      table.rows.push_back({{parameter.name},
                            {fmt::format("{:.4g}", parameter.gradient)},
                            {fmt::format("{:.4g}", parameter.weight)},
                            {fmt::format("{:.3g}", parameter.update)}});
  }
  return tables;
}

Table warnings_table(const Comparison& comparison) {
  Table table{"Warnings", {{"run"}, {"seed", true}, {comparison.counted(), true}, {"warning"}}, {}, {}};
  for (size_t i = 0; i < comparison.groups.size(); ++i)
    for (const auto& run : comparison.groups[i].runs)
      for (const auto& warning : run.warnings)
        table.rows.push_back({{.text = comparison.groups[i].label, .series = static_cast<int>(i)},
                              {grouped(run.seed)},
                              {grouped(warning.trained)},
                              {warning.text}});
  return table;
}

}  // namespace prism
