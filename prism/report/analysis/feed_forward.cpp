#include "prism/report/analysis/feed_forward.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/statistics.h"
#include "prism/core/text/counted.h"
#include "prism/core/text/printable.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

constexpr NumberStyle kRank = {1, false}, kGate = {4, false}, kGateShare = {2, false}, kBand = {3, false},
                      kLoss = {4, false};

/// The lines of each part, in the order of their first lines.
std::vector<std::pair<std::string, std::map<int64_t, Json>>> by_part(const AnalysisGroup& group) {
  std::vector<std::pair<std::string, std::map<int64_t, Json>>> parts;
  for (const auto& line : group.lines) {
    const auto name = line.at("part").get<std::string>();
    auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.first == name; });
    if (found == parts.end()) found = parts.insert(parts.end(), {name, {}});
    found->second[line.at("layer").get<int64_t>()] = line;
  }
  return parts;
}

/// "mlp.up_proj" without the module's name.
std::string short_part(const std::string& part) {
  return short_line(part.starts_with("mlp.") ? part.substr(4) : part, 40);
}

bool is_pair(const Json& line) {
  return line.at("kind").get<std::string>() == "pair";
}

}  // namespace

void check_stable_rank(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  line.at("part").get<std::string>();
  number_of(line.at("stable_rank"));
  if (line.contains("owner")) check_place(line, "owner", place);
}

void check_gates(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  for (const char* name : {"gate_rms", "closed_share", "bands", "band_width"}) number_of(line.at(name));
  line.at("pairs").get<int64_t>();
}

void check_twins(const Json& line, const std::string& place) {
  if (is_pair(line)) {
    check_place(line, "layer", place);
    check_place(line, "owner", place);
    number_of(line.at("cka"));
    return;
  }
  PRISM_CHECK(line.at("kind") == "permuted", "report",
              "{}: expected a line of kind pair or permuted; found another; correct the line.", place);
  number_of(line.at("loss"));
  numbers_of(line.at("permuted_losses"));
}

Table stable_ranks_table(const AnalysisGroup& group) {
  const auto parts = by_part(group);
  Table table{"Stable ranks: " + group.model, {{"layer"}}, {}, {}};
  std::map<int64_t, std::string> layers;  // and the owners of what they share
  for (const auto& [name, lines] : parts) {
    table.columns.push_back({short_part(name), true});
    for (const auto& [layer, line] : lines) {
      auto& owner = layers[layer];
      if (line.contains("owner")) owner = fmt::format("{}", line.at("owner").get<int64_t>());
    }
  }
  table.columns.push_back({"shares with", true});
  for (const auto& [layer, owner] : layers) {
    auto& row = table.rows.emplace_back();
    row.push_back({std::to_string(layer)});
    for (const auto& [name, lines] : parts) {
      const auto line = lines.find(layer);
      row.push_back({line == lines.end() ? "" : number_text(number_of(line->second.at("stable_rank")), kRank)});
    }
    row.push_back({owner});
  }
  table.notes.emplace_back(
      "Stable rank: sum of the squared singular values over the largest. Layers count from 0; a matrix that a layer "
      "shares is that of the layer in the last column.");
  return table;
}

std::vector<LabelledPlot> stable_ranks_plots(const AnalysisGroup& group) {
  LabelledPlot result;
  Plot& plot = result.plot;
  plot.id = "stable-ranks";
  plot.description = "Stable rank of the projections of feed-forward parts of " + group.model;
  Extent extent;
  for (const auto& [name, lines] : by_part(group)) {
    PlotSeries series{PlotStyle::kPoints, static_cast<int>(result.labels.size()), {}};
    for (const auto& [layer, line] : lines) {
      const double rank = number_of(line.at("stable_rank"));
      if (!std::isfinite(rank)) continue;
      extent.add(rank);
      series.points.push_back({.x = static_cast<double>(layer), .y = rank});
    }
    if (series.points.empty()) continue;
    plot.series.push_back(std::move(series));
    result.labels.push_back(short_part(name));
  }
  if (plot.series.empty()) return {};
  plot.x = layer_axis(plot);
  plot.y = axis_over("stable rank", extent);
  return {result};
}

Table gates_table(const AnalysisGroup& group) {
  Table table{"Gates: " + group.model,
              {{"layer"}, {"root mean square", true}, {"closed, %", true}, {"bands", true}, {"width of a band", true}},
              {},
              {}};
  int64_t pairs = 0;
  for (const auto& line : group.lines) {
    pairs = line.at("pairs").get<int64_t>();
    table.rows.push_back({{layer_name(line)},
                          {number_text(number_of(line.at("gate_rms")), kGate)},
                          {number_text(100 * number_of(line.at("closed_share")), kGateShare)},
                          {number_text(number_of(line.at("bands")), kBand)},
                          {number_text(number_of(line.at("band_width")), kBand)}});
  }
  table.notes.push_back(
      fmt::format("Closed: gates whose magnitude is below 1% of the layer's root mean square. Bands: on the straight "
                  "line between the inputs of two tokens, stretches along which a unit's gate exceeds half its largest "
                  "magnitude; number for each unit, and width as a share of the line; means over {} pairs of tokens. "
                  "Input: {}. Layers count from 0.",
                  pairs, input_of(group)));
  return table;
}

Table twins_table(const AnalysisGroup& group) {
  Table table{
      "Layers that share projections: " + group.model, {{"layer"}, {"shares with", true}, {"CKA", true}}, {}, {}};
  bool measured = false;
  for (const auto& line : group.lines) {
    if (is_pair(line)) {
      table.rows.push_back({{layer_name(line)},
                            {fmt::format("{}", line.at("owner").get<int64_t>())},
                            {number_text(number_of(line.at("cka")), kBand)}});
      continue;
    }
    const auto losses = numbers_of(line.at("permuted_losses"));
    if (losses.empty()) continue;
    measured = true;
    table.notes.push_back(fmt::format(
        "Loss {}; while layers share with others than they were trained with, {} on "
        "average over {}, {} at best.",
        number_text(number_of(line.at("loss")), kLoss), number_text(mean_of(losses), kLoss),
        counted(std::ssize(losses), "way"), number_text(*std::min_element(losses.begin(), losses.end()), kLoss)));
  }
  if (!measured)
    table.notes.emplace_back(
        "Whether it matters which layers share was not measured: that needs a text whose next tokens or labels are "
        "known, and two pairs of one kind and width.");
  table.notes.push_back(fmt::format(
      "CKA: centered kernel alignment of the outputs of the two feed-forward parts, 1 if one is a rotation of "
      "the other. Input: {}. Layers count from 0.",
      input_of(group)));
  return table;
}

}  // namespace prism
