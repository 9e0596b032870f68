#include "prism/report/analysis/analysis.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/statistics.h"
#include "prism/core/text/names.h"
#include "prism/report/analysis/budgets.h"
#include "prism/report/analysis/distance.h"
#include "prism/report/analysis/feed_forward.h"
#include "prism/report/analysis/maps.h"
#include "prism/report/analysis/spectrum.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr NumberStyle kNats = {3, false}, kShare = {3, false}, kNorm = {4, false}, kPercent = {1, false};
constexpr const char* kNorms = "norms";
constexpr const char* kPatterns[] = {"previous", "first", "self", "same", "punctuation", "induction"};

/// The reader of the residual stream: a layer, or the language-model head after the last layer.
std::string reader_name(const Json& line) {
  const auto reader = line.value("reader", "layer");
  return reader == "head" ? kHeadReader : reader == "classifier" ? reader : layer_name(line);
}

// The check functions, one for each kind of analysis, make sure that a line has all fields that tables and pictures
// use. They throw Json::exception or InputError.

void check_entropy(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  number_of(line.at("entropy"));
  check_head_values(line.at("head_entropies"), "entropies", place);
}

void check_heads(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  check_place(line, "head", place);
  for (const char* name : kPatterns) number_of(line.at(name));
}

void check_norms(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  number_of(line.at("residual_rms"));
  reader_name(line);
  numbers_of(line.at("dead_units"));
}

void check_gradients(const Json& line, const std::string& place) {
  line.at("name").get<std::string>();
  if (line.contains("layer")) {
    check_place(line, "layer", place);
    line.at("part").get<std::string>();
  }
  number_of(line.at("gradient"));
  number_of(line.at("weight"));
}

std::string title_of(const AnalysisGroup& group);

Table entropy_table(const AnalysisGroup& group) {
  Table table{title_of(group), {{"layer"}, {"heads", true}, {"mean", true}, {"of each head, in nats"}}, {}, {}};
  for (const auto& line : group.lines) {
    table.rows.push_back({{layer_name(line)},
                          {fmt::format("{}", line.at("head_entropies").size())},
                          {number_text(number_of(line.at("entropy")), kNats)},
                          {numbers_text(numbers_of(line.at("head_entropies")), kNats)}});
  }
  table.notes.push_back(fmt::format(
      "Entropy of the attention weights in nats, mean over queries: 0 if all weight is on one key, ln n if n keys have "
      "equal weight. Input: {}. Layers count from 0.",
      input_of(group)));
  return table;
}

Table heads_table(const AnalysisGroup& group) {
  Table table{title_of(group), {{"layer"}, {"head"}}, {}, {}};
  for (const char* name : kPatterns) table.columns.push_back({name, true});
  std::map<std::string, double> most;
  for (const auto& line : group.lines)
    for (const char* name : kPatterns) most[name] = std::max(most[name], number_of(line.at(name)));
  for (const auto& line : group.lines) {
    auto& row = table.rows.emplace_back();
    row.push_back({layer_name(line)});
    row.push_back({fmt::format("{}", line.at("head").get<int64_t>())});
    for (const char* name : kPatterns) {
      const double value = number_of(line.at(name));
      row.push_back({.text = number_text(value, kShare), .strong = value > 0 && value == most[name]});
    }
  }
  table.notes.push_back(fmt::format(
      "Shares of a head's attention, means over queries; the kinds overlap. Same: earlier tokens equal to the query's "
      "token. Induction: in a repeated random sequence, the token that followed the same token before. Input: {}. "
      "Layers and heads count from 0.",
      input_of(group)));
  return table;
}

Table norms_table(const AnalysisGroup& group) {
  Table table{title_of(group), {{"before"}, {"root mean square", true}, {"dead units, %", true}}, {}, {}};
  for (const auto& line : group.lines) {
    auto dead = numbers_of(line.at("dead_units"));
    for (double& share : dead) share *= 100;
    table.rows.push_back({{reader_name(line)},
                          {number_text(number_of(line.at("residual_rms")), kNorm)},
                          {numbers_text(dead, kPercent)}});
  }
  table.notes.push_back(
      fmt::format("Root mean square of the residual stream over all tokens and features; for each hidden layer of the "
                  "feed-forward part, the share of units that were 0 for every token. Input: {}. Layers count from 0.",
                  input_of(group)));
  return table;
}

std::string norm_text(double norm) {
  return std::isfinite(norm) ? fmt::format("{:.4g}", norm) : kNoValue;
}

Table gradients_table(const AnalysisGroup& group) {
  Table table{
      title_of(group), {{"parameter"}, {"gradient", true}, {"weight", true}, {"gradient / weight", true}}, {}, {}};
  for (const auto& line : group.lines) {
    const double gradient = number_of(line.at("gradient")), weight = number_of(line.at("weight"));
    table.rows.push_back(
        {{line.at("name").get<std::string>()},
         {norm_text(gradient)},
         {norm_text(weight)},
         {weight > 0 && std::isfinite(gradient) ? fmt::format("{:.3g}", gradient / weight) : kNoValue}});
  }
  table.notes.push_back(
      fmt::format("Euclidean norms of the mean loss's gradient and of the values. Input: {}.", input_of(group)));
  return table;
}

/// A map of layers by their parameters.
std::vector<AnalysisPicture> gradients_pictures(const AnalysisGroup& group) {
  HeatMap map{.description = title_of(group) + ", gradient / weight, as a power of ten", .row_label = "layer"};
  std::map<size_t, std::map<std::string, double>> layers;
  for (const auto& line : group.lines) {
    const double share = number_of(line.at("gradient")) / number_of(line.at("weight"));
    if (!line.contains("layer") || !(share > 0) || !std::isfinite(share)) continue;
    const auto part = line.at("part").get<std::string>();
    layers[line.at("layer").get<size_t>()][part] = std::log10(share);
    if (std::find(map.columns.begin(), map.columns.end(), part) == map.columns.end()) map.columns.push_back(part);
  }
  if (layers.empty()) return {};
  Extent extent;
  for (const auto& [layer, shares] : layers) {
    map.rows.push_back(std::to_string(layer));
    for (const auto& column : map.columns) {
      const auto share = shares.find(column);
      map.values.push_back(share == shares.end() ? std::numeric_limits<double>::quiet_NaN() : share->second);
      if (share != shares.end()) extent.add(share->second);
    }
  }
  map.low = extent.low;
  map.high = extent.high;
  return {{"gradients", map.description, input_of(group), map}};
}

std::vector<AnalysisPicture> entropy_pictures(const AnalysisGroup& group) {
  std::vector<std::vector<double>> layers;
  for (const auto& line : group.lines) layers.push_back(numbers_of(line.at("head_entropies")));
  const HeatMap map = heads_map(title_of(group) + ", in nats", layers);
  return {{"entropy", map.description, input_of(group), map}};
}

std::vector<AnalysisPicture> heads_pictures(const AnalysisGroup& group) {
  std::vector<AnalysisPicture> pictures;
  for (const char* name : kPatterns) {
    std::vector<std::vector<double>> layers;
    for (const auto& line : group.lines) {
      const auto layer = line.at("layer").get<size_t>(), head = line.at("head").get<size_t>();
      if (layers.size() <= layer) layers.resize(layer + 1);
      if (layers[layer].size() <= head) layers[layer].resize(head + 1, std::numeric_limits<double>::quiet_NaN());
      layers[layer][head] = number_of(line.at(name));
    }
    const std::string title = fmt::format("{}: {}", title_of(group), name);
    // Each kind has its own scale, since their shares of attention differ too much.
    pictures.push_back({fmt::format("heads-{}", name), title, input_of(group), heads_map(title, layers)});
  }
  return pictures;
}

std::vector<AnalysisPicture> map_pictures(const AnalysisGroup& group) {
  std::vector<AnalysisPicture> pictures;
  for (const auto& line : group.lines) pictures.push_back(map_picture(line, title_of(group), input_of(group)));
  return pictures;
}

/// Returns true if two lines of one group describe the same layer, head or parameter.
bool same_place(const Json& a, const Json& b) {
  for (const char* name : {"kind", "layer", "head", "part", "name", "by", "group"})
    if (a.value(name, Json()) != b.value(name, Json())) return false;
  return true;
}

std::string model_of(const Json& line) {
  return line.value("model", "");
}

std::string reading_of(const Json& line) {
  return line.value("reading", "");
}

struct Kind {
  const char* title;
  void (*check)(const Json& line, const std::string& place);
  Table (*table)(const AnalysisGroup&) = nullptr;                            ///< null if there is none
  std::vector<Table> (*tables)(const AnalysisGroup&) = nullptr;              ///< for analyses with several
  std::vector<AnalysisPicture> (*pictures)(const AnalysisGroup&) = nullptr;  ///< null if there are none
  std::vector<LabelledPlot> (*plots)(const AnalysisGroup&) = nullptr;  ///< null if there are none of a group alone
  // Lines of one model and reading are a group.
  std::string (*model)(const Json& line) = model_of;
  std::string (*reading)(const Json& line) = reading_of;
};

const std::map<std::string, Kind>& kinds() {
  static const std::map<std::string, Kind> all = {
      {"attention-distance",
       {.title = "Attention distance",
        .check = check_distances,
        .table = distances_table,
        .pictures = distances_pictures,
        .plots = distances_plots,
        .model = compared_models}},
      {"budgets",
       {.title = "Head budgets",
        .check = check_budgets,
        .tables = budgets_tables,
        .pictures = budgets_pictures,
        .plots = budgets_plots}},
      {"entropy",
       {.title = "Attention entropy", .check = check_entropy, .table = entropy_table, .pictures = entropy_pictures}},
      {"gates", {.title = "Gates", .check = check_gates, .table = gates_table}},
      {"gradients",
       {.title = "Gradients", .check = check_gradients, .table = gradients_table, .pictures = gradients_pictures}},
      {"heads",
       {.title = "What heads attend to", .check = check_heads, .table = heads_table, .pictures = heads_pictures}},
      {"maps", {.title = "Attention", .check = check_map, .pictures = map_pictures}},
      {kNorms, {.title = "Residual stream and dead units", .check = check_norms, .table = norms_table}},
      {"spectrum",
       {.title = "Spectrum",
        .check = check_spectrum,
        .table = spectrum_table,
        .plots = spectrum_plots,
        .reading = spectrum_reading}},
      {"twins", {.title = "Layers that share projections", .check = check_twins, .table = twins_table}},
      {"weights",
       {.title = "Stable ranks",
        .check = check_stable_rank,
        .table = stable_ranks_table,
        .plots = stable_ranks_plots}}};
  return all;
}

std::string title_of(const AnalysisGroup& group) {
  return fmt::format("{}: {}", kinds().at(group.analysis).title, group.model);
}

/// The models whose residual stream is drawn, in the order of their series; with their input if a model read several.
std::vector<std::string> norms_labels(const AnalysisRecords& records) {
  std::vector<std::string> names;
  std::map<std::string, int> times;
  for (const auto& group : records.groups)
    if (group.analysis == kNorms) ++times[group.model];
  for (const auto& group : records.groups)
    if (group.analysis == kNorms)
      names.push_back(times[group.model] == 1 ? group.model : fmt::format("{}, {}", group.model, input_of(group)));
  return names;
}

/// One series for each model and text.
LabelledPlot norms_plot(const AnalysisRecords& records) {
  LabelledPlot result;
  result.labels = norms_labels(records);
  Plot& plot = result.plot;
  plot.id = "norms";
  plot.description = "Residual stream before each layer of " + join_names(result.labels);
  Extent extent;
  int series = 0;
  for (const auto& group : records.groups) {
    if (group.analysis != kNorms) continue;
    PlotSeries line{PlotStyle::kPoints, series++, {}};
    for (const auto& at : group.lines) {
      const double rms = number_of(at.at("residual_rms"));
      if (!std::isfinite(rms)) continue;
      extent.add(rms);
      line.points.push_back({.x = at.at("layer").get<double>(),
                             .y = rms,
                             .text = fmt::format("{}: {}", reader_name(at), number_text(rms, kNorm))});
    }
    if (!line.points.empty()) plot.series.push_back(std::move(line));
  }
  if (plot.series.empty()) return result;
  plot.x = layer_axis(plot);
  plot.y = axis_over("root mean square", extent);
  return result;
}

/// Appends a number to a name that was there before. @param times  how often each name was there.
void make_unique(std::string& name, std::map<std::string, int>& times) {
  if (const int n = ++times[name]; n > 1) name += fmt::format("-{}", n);
}

}  // namespace

void AnalysisRecords::add(const Json& line, const std::string& place) {
  const std::string analysis = line.is_object() ? line.value("analysis", "") : "";
  const auto kind = kinds().find(analysis);
  PRISM_CHECK(kind != kinds().end(), "report",
              "{}: expected a line of prism analyse --json, of {}; found {}; name another file.", place,
              join_names(analysis_names()), analysis.empty() ? "another" : "one of " + analysis);
  kind->second.check(line, place);
  const std::string model = kind->second.model(line), reading = kind->second.reading(line);
  const auto same = std::find_if(groups.begin(), groups.end(), [&](const AnalysisGroup& group) {
    return group.analysis == analysis && group.model == model && group.reading == reading;
  });
  auto& group = same == groups.end() ? groups.emplace_back(AnalysisGroup{analysis, model, reading, {}}) : *same;
  // If an analysis was repeated, its last result counts.
  const auto known =
      std::find_if(group.lines.begin(), group.lines.end(), [&](const Json& old) { return same_place(old, line); });
  if (known == group.lines.end())
    group.lines.push_back(line);
  else
    *known = line;
}

std::vector<std::string> analysis_names() {
  return names_of(kinds());
}

AnalysisRecords read_analysis_records(const std::vector<fs::path>& files) {
  AnalysisRecords records;
  for (const auto& file : files) {
    std::istringstream stream(read_file(file));
    int64_t number = 0, found = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}, line {}", file.string(), number);
      try {
        records.add(parse_json(line, place), place);
      } catch (const Json::exception&) {
        throw InputError("report",
                         fmt::format("{}: expected a line of prism analyse --json; found one that lacks a field of its "
                                     "analysis, or has one of the wrong type; correct it or name another file.",
                                     place));
      }
      ++found;
    }
    PRISM_CHECK(found > 0, "report",
                "--analysis: expected lines of prism analyse --json in {}; found none; name "
                "another file.",
                file.string());
  }
  return records;
}

std::vector<Table> analysis_tables(const AnalysisRecords& records) {
  std::vector<Table> tables;
  for (const auto& group : records.groups) {
    const auto& kind = kinds().at(group.analysis);
    if (kind.table != nullptr) tables.push_back(kind.table(group));
    if (kind.tables == nullptr) continue;
    for (auto& table : kind.tables(group)) tables.push_back(std::move(table));
  }
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

std::vector<LabelledPlot> analysis_plots(const AnalysisRecords& records) {
  std::vector<LabelledPlot> plots;
  if (auto norms = norms_plot(records); !norms.plot.series.empty()) plots.push_back(std::move(norms));
  for (const auto& group : records.groups)
    if (const auto of_group = kinds().at(group.analysis).plots)
      for (auto& plot : of_group(group)) plots.push_back(std::move(plot));
  std::map<std::string, int> times;
  for (auto& [plot, labels] : plots) make_unique(plot.id, times);
  return plots;
}

std::vector<AnalysisPicture> analysis_pictures(const AnalysisRecords& records) {
  std::vector<AnalysisPicture> pictures;
  for (const auto& group : records.groups)
    if (const auto of_group = kinds().at(group.analysis).pictures)
      for (auto& picture : of_group(group)) pictures.push_back(std::move(picture));
  std::map<std::string, int> times;
  for (auto& picture : pictures) make_unique(picture.name, times);
  return pictures;
}

}  // namespace prism
