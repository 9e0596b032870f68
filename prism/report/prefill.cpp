#include "prism/report/prefill.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/report/number_text.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr const char* kOperation = "report";
constexpr NumberStyle kDensity = {3, false}, kRecall = {4, false}, kMilliseconds = {2, false}, kPerplexity = {4, false},
                      kRatio = {2, false}, kPercent = {2, true};

std::string value_text(const Json& value) {
  return value.is_string() ? value.get<std::string>() : value.dump();
}

/// Numbers that are measured, or nothing.
TableCell measured_cell(double value, NumberStyle style) {
  return {value == 0 ? kNoValue : number_text(value, style)};
}

/// A record with its settings, until it is known in which of them it differs from others.
struct Settings {
  PrefillMethodName* method;
  Json values;
};

/// Names those settings that are not alike in all records of a selector.
void name_settings(const std::vector<Settings>& all) {
  std::map<std::string, Json> first;
  std::map<std::string, std::vector<std::string>> differing;
  for (const auto& [method, values] : all) {
    const auto& known = first.emplace(method->selector, values).first->second;
    for (const auto& [name, value] : values.items()) {
      auto& names = differing[method->selector];
      if ((!known.contains(name) || known[name] != value) && std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(name);
    }
  }
  for (const auto& [method, values] : all) {
    method->text = method->series = method->selector;
    for (const auto& name : differing[method->selector]) {
      if (!values.contains(name)) continue;
      const std::string word = fmt::format(", {} {}", name, value_text(values[name]));
      method->text += word;
      if (values[name].is_string() || name.find("block") != std::string::npos) method->series += word;
    }
  }
}

class Reader {
 public:
  void read(const fs::path& file) {
    std::ifstream stream(file);
    PRISM_CHECK(stream.good(), kOperation,
                "--prefill: expected a file that can be read; found none at {}; name another.", file.string());
    int64_t number = 0;
    for (std::string line; std::getline(stream, line);) {
      ++number;
      if (line.find_first_not_of(" \t\r") == std::string::npos) continue;
      const std::string place = fmt::format("{}, line {}", file.string(), number);
      try {
        add(parse_json(line, place), place);
      } catch (const Json::exception&) {
        fail(place);
      }
    }
  }

  PrefillRecords take() {
    std::vector<Settings> all;
    for (size_t i = 0; i < records_.speeds.size(); ++i) all.push_back({&records_.speeds[i].method, speed_settings_[i]});
    for (size_t i = 0; i < records_.losses.size(); ++i) all.push_back({&records_.losses[i].method, loss_settings_[i]});
    name_settings(all);
    return std::move(records_);
  }

 private:
  [[noreturn]] static void fail(const std::string& place) {
    throw InputError(kOperation, fmt::format("--prefill: expected lines of prism bench prefill --json or prism eval "
                                             "--json; found another in {}; name another file.",
                                             place));
  }

  void add(const Json& line, const std::string& place) {
    if (!line.is_object()) fail(place);
    if (line.value("bench", "") == "prefill") return add_speed(line);
    if (line.value("task", "") == "perplexity" && line.contains("prefill")) return add_loss(line);
    fail(place);
  }

  void add_speed(const Json& line) {
    auto& row = records_.speeds.emplace_back();
    row.method.selector = line.at("selector").get<std::string>();
    row.mix = line.at("mix").get<std::string>();
    row.dtype = line.at("dtype").get<std::string>();
    for (const auto& [name, value] : {std::pair{"tokens", &row.tokens},
                                      {"heads", &row.heads},
                                      {"kv_heads", &row.kv_heads},
                                      {"head_dim", &row.head_dim}})
      *value = line.at(name).get<int64_t>();
    for (const auto& [name, value] : {std::pair{"density", &row.density},
                                      {"recall", &row.recall},
                                      {"recall_p5", &row.recall_p5},
                                      {"oracle_density", &row.oracle_density},
                                      {"select_ms", &row.select_ms},
                                      {"attend_ms", &row.attend_ms},
                                      {"dense_ms", &row.dense_ms},
                                      {"sdpa_ms", &row.sdpa_ms},
                                      {"speedup", &row.speedup}})
      *value = line.at(name).get<double>();
    speed_settings_.push_back(line.value("settings", Json::object()));
  }

  void add_loss(const Json& line) {
    const auto& prefill = line.at("prefill");
    auto& row = records_.losses.emplace_back();
    row.method.selector = prefill.at("selector").get<std::string>();
    row.model = line.at("model").get<std::string>();
    row.tokens = line.at("tokens").get<int64_t>();
    row.density = prefill.at("density").get<double>();
    row.recall = prefill.value("recall", 0.0);
    const auto& perplexity = line.at("token_perplexity");
    row.perplexity = perplexity.is_null() ? std::numeric_limits<double>::infinity() : perplexity.get<double>();
    loss_settings_.push_back(prefill.value("settings", Json::object()));
  }

  PrefillRecords records_;
  std::vector<Json> speed_settings_, loss_settings_;
};

/// The perplexity of the model without anything left out; 0 where no record says.
double dense_perplexity(const PrefillRecords& records, const std::string& model) {
  for (const auto& row : records.losses)
    if (row.method.selector == "dense" && row.model == model) return row.perplexity;
  return 0;
}

/// Widens an axis to hold a value.
void hold(PlotAxis& axis, double value) {
  axis.low = std::min(axis.low, value);
  axis.high = std::max(axis.high, value);
}

/// Lines over density, from the lowest on. @param value  of a row, NaN where it has none.
template <class Row>
Plot density_plot(const std::string& id, const std::string& description, const char* label,
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
           .text = fmt::format("{}: density {}, {} {}", row.method.text, number_text(row.density, kDensity), label,
                               number_text(y, kPerplexity))});
      hold(plot.y, y);
    }
    std::sort(line.points.begin(), line.points.end(), [](const auto& a, const auto& b) { return a.x < b.x; });
    has_line = has_line || line.points.size() > 1;
    if (!line.points.empty()) plot.series.push_back(std::move(line));
  }
  if (!has_line) plot.series.clear();
  const double margin = 0.04 * (plot.y.high - plot.y.low) + 1e-6;
  plot.y.low -= margin;
  plot.y.high += margin;
  return plot;
}

}  // namespace

std::vector<std::string> PrefillRecords::series() const {
  std::vector<std::string> names;
  const auto add = [&](const PrefillMethodName& method) {
    if (std::find(names.begin(), names.end(), method.series) == names.end()) names.push_back(method.series);
  };
  for (const auto& row : losses) add(row.method);
  for (const auto& row : speeds) add(row.method);
  return names;
}

PrefillRecords read_prefill_records(const std::vector<fs::path>& files) {
  Reader reader;
  for (const auto& file : files) reader.read(file);
  return reader.take();
}

Table prefill_speed_table(const PrefillRecords& records) {
  Table table{
      "Sparse prompts: time",
      {{"selector"},
       {"heads"},
       {"tokens", true},
       {"density", true},
       {"recall", true},
       {"oracle's density", true},
       {"select ms", true},
       {"attend ms", true},
       {"dense ms", true},
       {"LibTorch ms", true},
       {"times as fast as dense", true}},
      {},
      {"Medians of runs in turn. Density: kept blocks as a share of those that are seen. Recall: the share of the "
       "exact attention that they hold, on sampled rows; the oracle holds as much with the fewest blocks."}};
  for (const auto& row : records.speeds)
    table.rows.push_back(
        {{row.method.text},
         {fmt::format("{}, {} on {}, {} wide, {}", row.mix, row.heads, row.kv_heads, row.head_dim, row.dtype)},
         {grouped(row.tokens)},
         {number_text(row.density, kDensity)},
         measured_cell(row.recall, kRecall),
         measured_cell(row.oracle_density, kDensity),
         {number_text(row.select_ms, kMilliseconds)},
         {number_text(row.attend_ms, kMilliseconds)},
         {number_text(row.dense_ms, kMilliseconds)},
         measured_cell(row.sdpa_ms, kMilliseconds),
         {number_text(row.speedup, kRatio)}});
  return table;
}

Table prefill_loss_table(const PrefillRecords& records) {
  Table table{
      "Sparse prompts: perplexity",
      {{"selector"}, {"tokens", true}, {"density", true}, {"recall", true}, {"perplexity", true}, {"Δ %", true}},
      {},
      {"Perplexity per token; Δ: above that of dense attention."}};
  for (const auto& row : records.losses) {
    const double dense = dense_perplexity(records, row.model);
    table.rows.push_back(
        {{row.method.text},
         {grouped(row.tokens)},
         {number_text(row.density, kDensity)},
         measured_cell(row.recall, kRecall),
         {number_text(row.perplexity, kPerplexity)},
         {dense == 0 ? kNoValue : minus_signs(number_text(100 * (row.perplexity / dense - 1), kPercent))}});
  }
  return table;
}

std::vector<Plot> prefill_plots(const PrefillRecords& records) {
  const auto names = records.series();
  std::vector<Plot> plots = {density_plot<PrefillLoss>("prefill-perplexity", "Perplexity over density", "perplexity",
                                                       names, records.losses,
                                                       [](const PrefillLoss& row) { return row.perplexity; })};
  std::vector<std::pair<std::string, int64_t>> prompts;
  for (const auto& row : records.speeds) {
    const std::pair prompt{row.mix, row.tokens};
    if (std::find(prompts.begin(), prompts.end(), prompt) == prompts.end()) prompts.push_back(prompt);
  }
  for (size_t i = 0; i < prompts.size(); ++i) {
    const std::string mix = prompts[i].first;
    const int64_t tokens = prompts[i].second;
    plots.push_back(density_plot<PrefillSpeed>(
        fmt::format("prefill-recall-{}", i + 1),
        fmt::format("Recall over density, {} heads, {} tokens", mix, grouped(tokens)), "recall", names, records.speeds,
        [&](const PrefillSpeed& row) {
          return row.mix == mix && row.tokens == tokens && row.recall > 0 ? row.recall
                                                                          : std::numeric_limits<double>::quiet_NaN();
        }));
  }
  std::erase_if(plots, [](const Plot& plot) { return plot.series.empty(); });
  return plots;
}

}  // namespace prism
