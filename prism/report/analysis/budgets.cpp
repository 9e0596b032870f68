#include "prism/report/analysis/budgets.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <string_view>

#include "prism/core/error.h"
#include "prism/core/progress.h"
#include "prism/core/statistics.h"
#include "prism/core/text/printable.h"
#include "prism/report/analysis/maps.h"
#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_parts.h"

namespace prism {
namespace {

constexpr NumberStyle kSavedPercent = {1, false};
constexpr const char* kTitle = "Head budgets";

/// A quantity of the savings: its field and its name.
struct Cost {
  const char *field, *name;
};
constexpr Cost kCosts[] = {{"parameters", "parameters"},
                           {"attention_flops", "FLOPs of the attention parts, per text"},
                           {"model_flops", "FLOPs of the model, per text"},
                           {"ms", "milliseconds per text"},
                           {"memory_bytes", "memory of a batch, bytes"}};

/// Three significant digits, because shares of heads may be small.
std::string digits_text(double value) {
  return std::isfinite(value) ? fmt::format("{:#.3g}", value) : kNoValue;
}

std::string kind_of(const Json& line) {
  return line.at("kind").get<std::string>();
}

std::string text_of(const Json& line, const char* name) {
  return line.at(name).get<std::string>();
}

void check_layer(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  constexpr std::string_view kDivisions[] = {"all", "class", "length", "difficulty"};
  const auto by = text_of(line, "by");  // becomes part of a file's name
  PRISM_CHECK(std::find(std::begin(kDivisions), std::end(kDivisions), by) != std::end(kDivisions), "report",
              "{}: expected a division by all, class, length or difficulty; found \"{}\"; correct the line.", place,
              plain_line(by));
  text_of(line, "group");
  for (const char* name : {"examples", "share", "share_sd", "kept_share", "entropy", "entropy_sd"})
    number_of(line.at(name));
  check_head_values(line.at("head_kept"), "shares", place);
  const auto heads = line.at("heads").get<int64_t>();
  PRISM_CHECK(heads >= 1, "report", "{}: expected at least one head; found {}; correct the line.", place, heads);
  PRISM_CHECK(std::ssize(line.at("head_kept")) == heads, "report",
              "{}: expected head_kept of {} heads; found {}; correct the line.", place, heads,
              line.at("head_kept").size());
}

void check_text(const Json& line, const std::string& place) {
  check_place(line, "layer", place);
  number_of(line.at("share"));
  text_of(line, "label");
  check_head_values(line.at("probability"), "probabilities", place);
  check_head_values(line.at("kept"), "heads", place);
  const auto heads = std::ssize(line.at("probability"));
  for (const auto& head : line.at("kept"))
    PRISM_CHECK(head.get<int64_t>() >= 0 && head.get<int64_t>() < heads, "report",
                "{}: expected kept heads from 0 to {}; found {}; correct the line.", place, heads - 1,
                head.get<int64_t>());
}

void check_savings(const Json& line) {
  for (const char* name : {"texts", "batch", "tokens", "share", "kept_share"}) number_of(line.at(name));
  for (const char* model : {"with", "without"})
    for (const auto& cost : kCosts) number_of(line.at(model).at(cost.field));
}

std::vector<Json> lines_of_kind(const AnalysisGroup& group, const char* kind) {
  std::vector<Json> lines;
  for (const auto& line : group.lines)
    if (kind_of(line) == kind) lines.push_back(line);
  return lines;
}

/// The lines of kind layer by what their examples are divided by, in the order of their first lines.
std::vector<std::pair<std::string, std::vector<Json>>> divisions(const AnalysisGroup& group) {
  std::vector<std::pair<std::string, std::vector<Json>>> result;
  for (const auto& line : lines_of_kind(group, "layer")) {
    const auto by = text_of(line, "by");
    const auto known = std::find_if(result.begin(), result.end(), [&](const auto& other) { return other.first == by; });
    auto& lines = known == result.end() ? result.emplace_back(by, std::vector<Json>()).second : known->second;
    lines.push_back(line);
  }
  return result;
}

TableCell spread_cell(const Json& line, const char* mean, const char* deviation) {
  const bool has_spread = number_of(line.at("examples")) > 1;
  return {digits_text(number_of(line.at(mean))), has_spread ? digits_text(number_of(line.at(deviation))) : ""};
}

Table layers_table(const std::string& by, const std::vector<Json>& lines, const AnalysisGroup& group) {
  const bool is_divided = by != "all";
  Table table{fmt::format("{}{}: {}", kTitle, is_divided ? " by " + by : "", group.model), {{"layer"}}, {}, {}};
  if (is_divided) table.columns.push_back({by});
  for (const char* name : {"examples", "s", "k / H", "entropy of p"}) table.columns.push_back({name, true});
  table.columns.push_back({"how often each head is computed"});
  for (const auto& line : lines) {
    auto& row = table.rows.emplace_back();
    row.push_back({layer_name(line)});
    if (is_divided) row.push_back({text_of(line, "group")});
    row.push_back({grouped(line.at("examples").get<int64_t>())});
    row.push_back(spread_cell(line, "share", "share_sd"));
    row.push_back({digits_text(number_of(line.at("kept_share")))});
    row.push_back(spread_cell(line, "entropy", "entropy_sd"));
    row.push_back({numbers_text(numbers_of(line.at("head_kept")), {2, false})});
  }
  if (is_divided) return table;  // the first table, of all examples, has the note
  table.notes.push_back(
      fmt::format("s: share of heads; k / H: share of heads that are computed, at least one; p: choice of heads, "
                  "entropy in nats. ± "
                  "is the sample standard deviation over examples. Input: {}. Layers count from 0.",
                  input_of(group)));
  return table;
}

Table savings_table(const Json& line, const AnalysisGroup& group) {
  Table table{fmt::format("What head budgets save: {}", group.model),
              {{"quantity"}, {"with budgets", true}, {"without", true}, {"saved, %", true}},
              {},
              {}};
  const auto saved = [](double with, double without) {
    return without > 0 ? number_text(100 * (1 - with / without), kSavedPercent) : kNoValue;
  };
  const double share = number_of(line.at("share")), kept = number_of(line.at("kept_share"));
  table.rows.push_back({{"share of heads s"}, {digits_text(share)}, {"1"}, {""}});
  table.rows.push_back({{"heads computed, k / H"}, {digits_text(kept)}, {"1"}, {saved(kept, 1)}});
  for (const auto& [field, name] : kCosts) {
    const double with = number_of(line.at("with").at(field)), without = number_of(line.at("without").at(field));
    table.rows.push_back({{name}, {short_number(with)}, {short_number(without)}, {saved(with, without)}});
  }
  table.notes.push_back(
      fmt::format("{} texts of {} tokens on average, {} per forward pass; without: a model of the same size without "
                  "head budgets, timed in turn. FLOPs are those of the texts' own tokens, times include padding; "
                  "memory is what tensors of a batch of the longest texts need at their peak, besides the weights.",
                  grouped(line.at("texts").get<int64_t>()), number_text(number_of(line.at("tokens")), {1, false}),
                  grouped(line.at("batch").get<int64_t>())));
  return table;
}

Table text_table(const std::vector<Json>& lines, const AnalysisGroup& group) {
  Table table{fmt::format("{} for a text: {}", kTitle, group.model),
              {{"layer"}, {"s", true}, {"heads computed"}, {"p of each head"}},
              {},
              {}};
  for (const auto& line : lines) {
    std::string kept;
    for (const auto& head : line.at("kept")) kept += fmt::format("{}{}", kept.empty() ? "" : " ", head.get<int64_t>());
    table.rows.push_back({{layer_name(line)},
                          {digits_text(number_of(line.at("share")))},
                          {kept},
                          {numbers_text(numbers_of(line.at("probability")), {2, false})}});
  }
  table.notes.push_back(fmt::format("The model labels the text {}. Input: {}. Layers and heads count from 0.",
                                    text_of(lines.front(), "label"), input_of(group)));
  return table;
}

/// A quantity that is drawn over layers.
struct Drawn {
  const char *mean, *deviation, *id, *label;
};
constexpr Drawn kDrawn[] = {{"share", "share_sd", "budgets-share", "share of heads s"},
                            {"entropy", "entropy_sd", "budgets-entropy", "entropy of the choice of heads (nats)"}};

LabelledPlot layers_plot(const std::string& by, const std::vector<Json>& lines, const Drawn& drawn,
                         const AnalysisGroup& group) {
  LabelledPlot result;
  for (const auto& line : lines)
    if (const auto name = text_of(line, "group");
        std::find(result.labels.begin(), result.labels.end(), name) == result.labels.end())
      result.labels.push_back(name);
  Plot& plot = result.plot;
  plot.id = fmt::format("{}-{}", drawn.id, by);
  plot.description = fmt::format("{} of each layer{}, with bands of one sample standard deviation over examples: {}",
                                 drawn.label, by == "all" ? "" : " by " + by, group.model);
  Extent extent{0, 0};
  for (size_t i = 0; i < result.labels.size(); ++i) {
    std::vector<PlacedStatistic> values;
    for (const auto& line : lines) {
      const Statistic value{number_of(line.at(drawn.mean)), number_of(line.at(drawn.deviation)),
                            line.at("examples").get<int64_t>()};
      if (text_of(line, "group") != result.labels[i] || !std::isfinite(value.mean) || !std::isfinite(value.deviation))
        continue;
      values.push_back({line.at("layer").get<double>(), value,
                        fmt::format("{}, layer {}: {} ± {}", result.labels[i], layer_name(line),
                                    digits_text(value.mean), digits_text(value.deviation))});
      extent.add(deviation_bar(value));
    }
    add_statistics(plot, i, result.labels.size(), values);
  }
  if (plot.series.empty()) return result;
  plot.x = layer_axis(plot);
  plot.y = axis_over(drawn.label, extent);
  plot.y.low = std::min(extent.low, 0.0);
  return result;
}

/// How often each class computes each head of a layer.
AnalysisPicture classes_picture(int64_t layer, const std::vector<Json>& lines, const AnalysisGroup& group) {
  HeatMap map{.description = fmt::format("How often each class computes each head of layer {}: {}", layer, group.model),
              .row_label = "class",
              .column_label = "head"};
  size_t heads = 0;
  for (const auto& line : lines) heads = std::max(heads, line.at("head_kept").size());
  for (size_t h = 0; h < heads; ++h) map.columns.push_back(std::to_string(h));
  for (const auto& line : lines) {
    map.rows.push_back(text_of(line, "group"));
    auto kept = numbers_of(line.at("head_kept"));
    kept.resize(heads, NAN);
    map.values.insert(map.values.end(), kept.begin(), kept.end());
  }
  return {fmt::format("budgets-heads-layer{}", layer), map.description, input_of(group), map};
}

}  // namespace

void check_budgets(const Json& line, const std::string& place) {
  const auto kind = kind_of(line);
  if (kind == "layer") return check_layer(line, place);
  if (kind == "savings") return check_savings(line);
  if (kind == "text") return check_text(line, place);
  PRISM_CHECK(kind == "map", "report",
              "{}: expected a line of kind layer, savings, text or map; found {}; correct the line.", place, kind);
  check_map(line, place);
  number_of(line.at("probability"));
  line.at("is_kept").get<bool>();
}

std::vector<Table> budgets_tables(const AnalysisGroup& group) {
  std::vector<Table> tables;
  for (const auto& [by, lines] : divisions(group)) tables.push_back(layers_table(by, lines, group));
  for (const auto& line : lines_of_kind(group, "savings")) tables.push_back(savings_table(line, group));
  if (const auto lines = lines_of_kind(group, "text"); !lines.empty()) tables.push_back(text_table(lines, group));
  return tables;
}

std::vector<LabelledPlot> budgets_plots(const AnalysisGroup& group) {
  std::vector<LabelledPlot> plots;
  for (const auto& [by, lines] : divisions(group))
    for (const auto& drawn : kDrawn) {
      auto plot = layers_plot(by, lines, drawn, group);
      if (!plot.plot.series.empty()) plots.push_back(std::move(plot));
    }
  return plots;
}

std::vector<AnalysisPicture> budgets_pictures(const AnalysisGroup& group) {
  std::vector<AnalysisPicture> pictures;
  std::map<int64_t, std::vector<Json>> layers;
  for (const auto& line : lines_of_kind(group, "layer"))
    if (text_of(line, "by") == "class") layers[line.at("layer").get<int64_t>()].push_back(line);
  for (const auto& [layer, lines] : layers) pictures.push_back(classes_picture(layer, lines, group));
  for (const auto& line : lines_of_kind(group, "map")) {
    auto picture = map_picture(line, fmt::format("{}: {}", kTitle, group.model), input_of(group));
    if (line.at("is_kept").get<bool>()) picture.name += "-computed";
    picture.title += fmt::format(", p {}{}", digits_text(number_of(line.at("probability"))),
                                 line.at("is_kept").get<bool>() ? ", computed" : ", not computed");
    picture.map.description = picture.title;
    pictures.push_back(std::move(picture));
  }
  return pictures;
}

}  // namespace prism
