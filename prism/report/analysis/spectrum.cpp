#include "prism/report/analysis/spectrum.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/text/names.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/number_text.h"

namespace prism {
namespace {

constexpr NumberStyle kRootMeanSquare = {3, false};
constexpr size_t kShownName = 20;
constexpr const char* kZoneNames[] = {"dead", "transition", "semantic", "full"};
constexpr const char* kEnergyFields[] = {"q", "q_pooled", "k", "k_pooled"};

void check_energy(const Json& band) {
  for (const char* field : kEnergyFields) number_of(band.at(field));
}

/// Both values of a zone: "0.812 → 0.094".
std::string before_and_after(const Json& zone, const std::string& side) {
  return fmt::format("{} → {}", number_text(number_of(zone.at(side)), kRootMeanSquare),
                     number_text(number_of(zone.at(side + "_pooled")), kRootMeanSquare));
}

/// The names of the zones of a line, for messages.
std::string list_of_zones(const Json& zones) {
  std::vector<std::string> names;
  for (const auto& zone : zones) names.push_back(short_line(zone.at("zone").get<std::string>(), kShownName));
  return names.empty() ? "none" : join_names(names);
}

/// Lines over the pairs, mean over the heads. Values that are not finite are left out.
PlotSeries line_over_pairs(const std::vector<Json>& heads, int series, const char* field) {
  std::map<int64_t, std::vector<double>> values;
  for (const auto& head : heads)
    for (const auto& pair : head.at("pairs"))
      values[pair.at("pair").get<int64_t>()].push_back(number_of(pair.at(field)));
  PlotSeries line{.style = PlotStyle::kPoints, .series = series, .points = {}};
  for (const auto& [pair, of_heads] : values)
    if (const double mean = mean_of(of_heads); std::isfinite(mean))
      line.points.push_back({.x = static_cast<double>(2 * pair), .y = mean});
  return line;
}

PlotAxis pair_axis(const std::vector<Json>& heads) {
  size_t most = 1;
  for (const auto& head : heads) most = std::max(most, head.at("pairs").size());
  return {.label = "2 j", .low = 0, .high = 2.0 * static_cast<double>(most)};
}

void add_series(Plot& plot, PlotSeries line) {
  if (!line.points.empty()) plot.series.push_back(std::move(line));
}

std::vector<double> gains_of(const Json& head) {
  std::vector<double> gains;
  for (const auto& pair : head.at("pairs")) gains.push_back(number_of(pair.at("gain")));
  return gains;
}

/// The lines of each layer.
std::map<int64_t, std::vector<Json>> by_layer(const std::vector<Json>& lines) {
  std::map<int64_t, std::vector<Json>> layers;
  for (const auto& line : lines) layers[line.at("layer").get<int64_t>()].push_back(line);
  return layers;
}

}  // namespace

void check_spectrum(const Json& line, const std::string& place) {
  for (const char* name : {"model", "reading"}) line.at(name).get<std::string>();
  check_place(line, "layer", place);
  check_place(line, "head", place);
  const auto block = line.at("block_size").get<int64_t>();
  PRISM_CHECK(block >= 1, "report", "{}: expected a block_size of at least 1; found {}; correct the line.", place,
              block);
  const auto& zones = line.at("zones");
  const auto is_zone = [](const Json& zone, const char* name) { return zone.at("zone") == name; };
  PRISM_CHECK(
      zones.is_array() && std::equal(zones.begin(), zones.end(), std::begin(kZoneNames), std::end(kZoneNames), is_zone),
      "report", "{}: expected the zones dead, transition, semantic and full; found {}; correct the line.", place,
      zones.is_array() ? list_of_zones(zones) : what_is(zones));
  for (const auto& zone : zones) {
    zone.at("pairs").get<int64_t>();
    check_energy(zone);
  }
  const auto& pairs = line.at("pairs");
  PRISM_CHECK(pairs.is_array() && pairs.size() <= kMostPlaces, "report",
              "{}: expected a list of at most {} pairs; found {}; correct the line.", place, kMostPlaces,
              what_is(pairs));
  for (const auto& pair : pairs) {
    check_place(pair, "pair", place);
    number_of(pair.at("gain"));
    check_energy(pair);
  }
}

std::string spectrum_reading(const Json& line) {
  return fmt::format("{}, blocks of {} tokens", line.at("reading").get<std::string>(),
                     grouped(line.at("block_size").get<int64_t>()));
}

Table spectrum_table(const AnalysisGroup& group) {
  Table table{"Spectrum: " + group.model, {{"layer"}, {"head"}, {"pairs", true}}, {}, {}};
  for (const std::string zone : kZoneNames)
    for (const char* side : {" q", " k"}) table.columns.push_back({zone + side, true});
  for (const auto& line : group.lines) {
    auto& row = table.rows.emplace_back();
    row.push_back({layer_name(line)});
    row.push_back({fmt::format("{}", line.at("head").get<int64_t>())});
    // Zones differ between layers of different head widths.
    const auto& zones = line.at("zones");
    row.push_back({fmt::format("{} + {} + {}", zones[0].at("pairs").get<int64_t>(), zones[1].at("pairs").get<int64_t>(),
                               zones[2].at("pairs").get<int64_t>())});
    for (const auto& zone : zones)
      for (const char* side : {"q", "k"}) row.push_back({before_and_after(zone, side)});
  }
  table.notes.push_back(fmt::format(
      "Pairs: dead + transition + semantic. Root mean squares of queries and keys: of tokens → of means over blocks. "
      "Input: {}. Layers and heads count from 0.",
      input_of(group)));
  return table;
}

LabelledPlot gain_plot(const std::vector<Json>& heads) {
  LabelledPlot result;
  result.plot = {.id = "gain",
                 .description = fmt::format("Share of each pair's length that the mean over {} tokens keeps",
                                            heads.front().at("block_size").get<int64_t>()),
                 .x = pair_axis(heads),
                 .y = {.label = "lambda", .low = 0, .high = 1.05}};
  std::vector<std::pair<std::vector<double>, std::vector<std::string>>> distinct;  // gains and their layers
  for (const auto& [layer, of_layer] : by_layer(heads)) {
    const auto gains = gains_of(of_layer.front());
    auto same = std::find_if(distinct.begin(), distinct.end(), [&](const auto& entry) { return entry.first == gains; });
    if (same == distinct.end()) {
      add_series(result.plot, line_over_pairs({of_layer.front()}, static_cast<int>(distinct.size()), "gain"));
      same = distinct.insert(distinct.end(), {gains, {}});
    }
    same->second.push_back(std::to_string(layer));
  }
  for (const auto& [gains, layers] : distinct)
    result.labels.push_back((layers.size() == 1 ? "layer " : "layers ") + join_names(layers));
  return result;
}

LabelledPlot energy_plot(const std::vector<Json>& heads, const std::string& where) {
  Plot plot{.id = "energy",
            .description = "Root mean square of each pair, for tokens and for means over blocks, " + where,
            .x = pair_axis(heads),
            .y = {.label = "root mean square", .low = 0, .high = 0}};
  int series = 0;
  for (const char* field : kEnergyFields) add_series(plot, line_over_pairs(heads, series++, field));
  for (const auto& line : plot.series)
    for (const auto& point : line.points) plot.y.high = std::max(plot.y.high, 1.05 * point.y);
  if (plot.y.high == 0) plot.y.high = 1;  // heads without any energy
  return {plot, {"queries", "queries, pooled", "keys", "keys, pooled"}};
}

std::vector<LabelledPlot> spectrum_plots(const AnalysisGroup& group) {
  std::vector<LabelledPlot> plots = {gain_plot(group.lines)};
  plots.front().plot.description += ", of " + group.model;
  for (const auto& [layer, heads] : by_layer(group.lines)) {
    auto& energy = plots.emplace_back(
        energy_plot(heads, fmt::format("mean over the heads of layer {} of {}", layer, group.model)));
    energy.plot.id += fmt::format("-layer{}", layer);
  }
  std::erase_if(plots, [](const LabelledPlot& labelled) { return labelled.plot.series.empty(); });
  return plots;
}

std::vector<FigureFile> head_figures(const Json& line, const std::vector<BandGrid>& grids, const std::string& gnuplot) {
  const auto where = fmt::format("layer {}, head {}", layer_name(line), line.at("head").get<int64_t>());
  const auto energy = energy_plot({line}, where);
  std::vector<FigureFile> files = {{"gain.svg", plot_file(gain_plot({line}).plot, {}, gnuplot)},
                                   {"energy.svg", plot_file(energy.plot, energy.labels, gnuplot)}};
  for (const auto& [band, grid] : grids) {
    const auto map = grid_plot("map", fmt::format("{}: where attention goes, {}", band, where), grid);
    files.push_back({band + ".svg", plot_file(map, {}, gnuplot)});
  }
  return files;
}

}  // namespace prism
