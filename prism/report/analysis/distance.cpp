#include "prism/report/analysis/distance.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

constexpr NumberStyle kTokens = {2, false}, kTokensDifference = {2, true};

bool is_of_layer(const Json& line) {
  return line.at("kind") == "layer";
}

std::vector<std::string> names_in(const Json& line, const char* field) {
  return line.at(field).get<std::vector<std::string>>();
}

struct Arm {
  std::string name;          ///< "runs/prism-1 and 4 more"
  std::vector<Json> layers;  ///< its part of each line of kind layer
};

std::string arm_name(const std::vector<std::string>& models) {
  return models.size() == 1 ? models.front() : fmt::format("{} and {} more", models.front(), models.size() - 1);
}

/// The lines of kind layer.
std::vector<Json> layer_lines(const AnalysisGroup& group) {
  std::vector<Json> lines;
  std::copy_if(group.lines.begin(), group.lines.end(), std::back_inserter(lines), is_of_layer);
  return lines;
}

/// One arm, or two that are compared. @param lines  of kind layer, at least one.
std::vector<Arm> arms_in(const std::vector<Json>& lines) {
  const auto against = names_in(lines.front(), "against_models");
  std::vector<Arm> arms = {{arm_name(names_in(lines.front(), "models")), {}}};
  if (!against.empty()) arms.push_back({arm_name(against), {}});
  for (const auto& line : lines) {
    arms[0].layers.push_back(against.empty() ? line : line.at("arm"));
    if (!against.empty()) arms[1].layers.push_back(line.at("against"));
  }
  return arms;
}

int64_t seeds_of(const Json& arm_layer) {
  return arm_layer.at("seeds").get<int64_t>();
}

Statistic distance_of(const Json& arm_layer) {
  return {number_of(arm_layer.at("distance")), number_of(arm_layer.at("seed_sd")), seeds_of(arm_layer)};
}

void check_arm_layer(const Json& arm_layer) {
  for (const char* name : {"heads", "head_dim", "seeds"}) arm_layer.at(name).get<int64_t>();
  for (const char* name : {"distance", "seed_sd", "head_sd"}) number_of(arm_layer.at(name));
}

void check_model_line(const Json& line, const std::string& place) {
  line.at("model").get<std::string>();
  const auto& layers = line.at("layers");
  PRISM_CHECK(layers.is_array() && !layers.empty() && layers.size() < kMostPlaces, "report",
              "{}: expected a list of 1 to {} layers; found {}; correct the line.", place, kMostPlaces - 1,
              what_is(layers));
  for (const auto& layer : layers) check_head_values(layer.at("head_distances"), "distances", place);
}

void check_layer_line(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  PRISM_CHECK(!names_in(line, "models").empty(), "report",
              "{}: expected the models that were measured; found none; correct the line.", place);
  line.at("queries").get<int64_t>();
  const auto against = names_in(line, "against_models");
  if (against.empty()) return check_arm_layer(line);
  check_arm_layer(line.at("arm"));
  check_arm_layer(line.at("against"));
  for (const char* name : {"difference", "difference_sd"}) number_of(line.at(name));
  const bool paired = line.at("paired").get<bool>();
  line.at("same_heads").get<bool>();
  PRISM_CHECK(!paired || against.size() == line.at("models").size(), "report",
              "{}: expected as many models in both arms, because they are paired; found {} and {}; correct the line.",
              place, line.at("models").size(), against.size());
}

TableCell tokens_cell(double value, double deviation, int64_t count, NumberStyle style = kTokens) {
  return {number_text(value, style), count > 1 ? number_text(deviation, kTokens) : ""};
}

/// Adds an arm's two cells to a row: its geometry, and its distance with the deviation over seeds if it has several.
void add_arm_cells(std::vector<TableCell>& row, const Json& arm_layer) {
  row.push_back(
      {fmt::format("{} x {}", arm_layer.at("heads").get<int64_t>(), arm_layer.at("head_dim").get<int64_t>())});
  const Statistic distance = distance_of(arm_layer);
  row.push_back(tokens_cell(distance.mean, distance.deviation, distance.count));
}

/// The row of an arm on its own.
std::vector<TableCell> arm_row(const Json& line) {
  std::vector<TableCell> row = {{layer_name(line)}};
  add_arm_cells(row, line);
  row.push_back({line.at("heads") > 1 ? number_text(number_of(line.at("head_sd")), kTokens) : kNoValue});
  return row;
}

std::vector<TableCell> comparison_row(const Json& line) {
  std::vector<TableCell> row = {{layer_name(line)}};
  for (const char* arm : {"arm", "against"}) add_arm_cells(row, line.at(arm));
  row.push_back(tokens_cell(number_of(line.at("difference")), number_of(line.at("difference_sd")),
                            std::min(seeds_of(line.at("arm")), seeds_of(line.at("against"))), kTokensDifference));
  row.push_back({line.at("same_heads").get<bool>() ? "" : "yes"});
  return row;
}

/// Says how the difference of the arms was computed.
std::string pairing_note(const Json& line) {
  const auto models = names_in(line, "models"), against = names_in(line, "against_models");
  if (!line.at("paired").get<bool>())
    return fmt::format(
        "The difference is between means of {} and {} models, not paired; its deviation is the square root of the sum "
        "of their squared deviations.",
        models.size(), against.size());
  std::vector<std::string> pairs;
  for (size_t i = 0; i < models.size(); ++i) pairs.push_back(models[i] + " - " + against[i]);
  return fmt::format("The difference is paired: {}.", join_names(pairs));
}

bool has_several_seeds(const std::vector<Arm>& arms) {
  return std::any_of(arms.begin(), arms.end(), [](const Arm& arm) {
    return std::any_of(arm.layers.begin(), arm.layers.end(), [](const auto& layer) { return seeds_of(layer) > 1; });
  });
}

std::string arms_text(const std::vector<Arm>& arms) {
  return arms.size() == 1 ? arms[0].name : fmt::format("{} against {}", arms[0].name, arms[1].name);
}

}  // namespace

void check_distances(const Json& line, const std::string& place) {
  const auto kind = line.at("kind").get<std::string>();
  line.at("reading").get<std::string>();
  PRISM_CHECK(kind == "model" || kind == "layer", "report",
              "{}: expected a line of kind model or layer; found {}; correct the line.", place, kind);
  kind == "model" ? check_model_line(line, place) : check_layer_line(line, place);
}

std::string compared_models(const Json& line) {
  if (!is_of_layer(line)) return line.at("model").get<std::string>();
  const auto against = names_in(line, "against_models");
  return join_names(names_in(line, "models")) + (against.empty() ? "" : " against " + join_names(against));
}

Table distances_table(const AnalysisGroup& group) {
  Table table{"Attention distance", {{"layer"}, {"heads x width"}, {"distance", true}}, {}, {}};
  const auto lines = layer_lines(group);
  if (lines.empty()) return table;
  const auto arms = arms_in(lines);
  const bool compares = arms.size() > 1;
  table.caption += ": " + arms_text(arms);
  const std::vector<TableColumn> more =
      compares ? std::vector<TableColumn>{{"against"}, {"distance", true}, {"difference", true}, {"heads differ"}}
               : std::vector<TableColumn>{{"sd over heads", true}};
  table.columns.insert(table.columns.end(), more.begin(), more.end());
  for (const auto& line : lines) table.rows.push_back(compares ? comparison_row(line) : arm_row(line));
  table.notes.push_back(
      fmt::format("Mean tokens back over {} queries: the second half of each sequence. Input: {}. Layers count from 0.",
                  grouped(lines.front().at("queries").get<int64_t>()), input_of(group)));
  if (compares) table.notes.push_back(pairing_note(lines.front()));
  if (has_several_seeds(arms)) table.notes.emplace_back("± is the sample standard deviation over models.");
  return table;
}

std::vector<LabelledPlot> distances_plots(const AnalysisGroup& group) {
  const auto lines = layer_lines(group);
  if (lines.empty()) return {};
  const auto arms = arms_in(lines);
  LabelledPlot result;
  Plot& plot = result.plot;
  plot.id = "attention-distance";
  plot.description = "Mean attention distance of each layer of " + arms_text(arms);
  if (has_several_seeds(arms)) plot.description += ", with bands of one sample standard deviation over models";
  Extent extent{0, 0};
  for (const auto& arm : arms) {
    std::vector<PlacedStatistic> values;
    for (size_t i = 0; i < lines.size(); ++i) {
      const Statistic distance = distance_of(arm.layers[i]);
      if (!std::isfinite(distance.mean) || !std::isfinite(distance.deviation)) continue;
      values.push_back({lines[i].at("layer").get<double>(), distance, ""});
      extent.add(deviation_bar(distance));
    }
    add_statistics(plot, result.labels.size(), arms.size(), values);
    result.labels.push_back(arm.name);
  }
  if (plot.series.empty()) return {};
  plot.x = layer_axis(plot);
  plot.y = axis_over("mean attention distance (tokens)", extent);
  plot.y.low = std::min(extent.low, 0.0);
  return {result};
}

std::vector<AnalysisPicture> distances_pictures(const AnalysisGroup& group) {
  std::vector<AnalysisPicture> pictures;
  for (const auto& line : group.lines) {
    if (is_of_layer(line)) continue;
    std::vector<std::vector<double>> layers;
    for (const auto& layer : line.at("layers")) layers.push_back(numbers_of(layer.at("head_distances")));
    const std::string title = fmt::format("Attention distance of each head: {}, in tokens", group.model);
    HeatMap map = heads_map(title, layers);
    map.decimals = 1;
    pictures.push_back({"attention-distance-heads", title, input_of(group), map});
  }
  return pictures;
}

}  // namespace prism
