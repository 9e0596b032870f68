#include "prism/report/tables/measured_tables.h"

#include <fmt/format.h>

#include <functional>
#include <vector>

#include "prism/core/text/names.h"
#include "prism/report/compare/measured.h"
#include "prism/report/tables/cells.h"

namespace prism {
namespace {

/// "0 to 2, 6": ascending layers.
std::string layers_text(const std::vector<int64_t>& layers) {
  std::vector<std::string> stretches;
  for (size_t i = 0; i < layers.size(); ++i) {
    const size_t first = i;
    while (i + 1 < layers.size() && layers[i + 1] == layers[i] + 1) ++i;
    const std::string first_text = std::to_string(layers[first]);
    stretches.push_back(first == i ? first_text : fmt::format("{} to {}", first_text, layers[i]));
  }
  return join_names(stretches);
}

std::vector<TableCell> text_row(const Comparison& comparison, size_t index, const std::string& text,
                                const std::vector<SeedValue>& losses) {
  std::vector<TableCell> row = {name_cell(comparison, index), {text}, spread_cell(statistic_of(losses), kLossNumber)};
  const bool is_baseline = index == comparison.baseline;
  const auto gap = paired_difference(losses, text_losses(comparison.groups[comparison.baseline], text));
  row.push_back(is_baseline ? TableCell{"baseline"} : spread_cell(gap.difference, kLossDifference));
  row.push_back(is_baseline ? TableCell{kNoValue} : interval_cell(gap, kLossDifference));
  return row;
}

}  // namespace

Table text_loss_table(const Comparison& comparison) {
  Table table{"Loss on whole texts",
              {{"run"}, {"text"}, {"loss per token", true}, {"Δ loss", true}, {"95% interval", true}},
              {},
              {fmt::format("Nats per token over the whole text. Δ loss: minus that of {}, paired by seed if seeds are "
                           "shared; negative is better. ± is the sample standard deviation over seeds.",
                           comparison.groups[comparison.baseline].label)}};
  for (const auto& text : measured_texts(comparison)) {
    for (size_t i = 0; i < comparison.groups.size(); ++i) {
      const auto losses = text_losses(comparison.groups[i], text);
      if (!losses.empty()) table.rows.push_back(text_row(comparison, i, text, losses));
    }
  }
  return table;
}

Table test_table(const Comparison& comparison) {
  Table table{
      "Scores on the test split",
      {{"run"},
       {"accuracy", true},
       {"Δ accuracy", true},
       {"95% interval", true},
       {"balanced accuracy", true},
       {"macro-F1", true},
       {"loss", true},
       {"heads computed", true}},
      {},
      {fmt::format(
          "Δ accuracy: minus that of {}, paired by seed if seeds are shared; positive is better. Heads "
          "computed: k / H, mean over texts and layers, 1 for layers without a head budget. ± is the sample standard "
          "deviation over seeds.",
          comparison.groups[comparison.baseline].label)}};
  const auto accuracy = [](const ClassificationRecord& record) { return record.accuracy; };
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    const auto& group = comparison.groups[i];
    const auto values = test_scores(group, accuracy);
    if (values.empty()) continue;
    const bool is_baseline = i == comparison.baseline;
    const auto gap = paired_difference(values, test_scores(comparison.groups[comparison.baseline], accuracy));
    const auto cell = [&](const std::function<double(const ClassificationRecord&)>& score) {
      const auto scores = test_scores(group, score);
      return scores.empty() ? TableCell{kNoValue} : spread_cell(statistic_of(scores), kLossNumber);
    };
    table.rows.push_back({name_cell(comparison, i), spread_cell(statistic_of(values), kLossNumber),
                          is_baseline ? TableCell{"baseline"} : spread_cell(gap.difference, kLossDifference),
                          is_baseline ? TableCell{kNoValue} : interval_cell(gap, kLossDifference),
                          cell([](const auto& record) { return record.balanced_accuracy; }),
                          cell([](const auto& record) { return record.macro_f1; }),
                          cell([](const auto& record) { return record.loss; }),
                          cell([](const auto& record) { return mean_of_finite(record.kept_share); })});
  }
  return table;
}

Table distance_table(const Comparison& comparison) {
  Table table{"Mean attention distance of each layer, in tokens", {{"layer", true}}, {}, {}};
  NumberedRows rows(comparison.groups.size());
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    table.columns.push_back({comparison.groups[i].label, true});
    for (const auto& [layer, distance] : layer_distances(comparison.groups[i])) {
      rows.set(layer, i, spread_cell(distance, kDistanceNumber));
    }
  }
  rows.append_to(table);
  return table;
}

Table distance_difference_table(const Comparison& comparison) {
  const RunGroup& baseline = comparison.groups[comparison.baseline];
  Table table{
      fmt::format("Mean attention distance minus that of {}, in tokens", baseline.label), {{"layer", true}}, {}, {}};
  NumberedRows rows(comparison.groups.size() - 1);
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    const auto layers = distance_differences(comparison.groups[i], baseline);
    for (const auto& layer : layers)
      rows.set(layer.layer, table.columns.size() - 1, spread_cell(layer.distance.difference, kDistanceDifference));
    table.columns.push_back({comparison.groups[i].label, true});
  }
  rows.append_to(table);
  return table;
}

Table distance_stretch_table(const Comparison& comparison) {
  const RunGroup& baseline = comparison.groups[comparison.baseline];
  Table table{
      fmt::format("Attention distance minus that of {}, by layers with other head counts and the rest", baseline.label),
      {{"run"}, {"heads"}, {"layers"}, {"Δ distance", true}, {"95% interval", true}},
      {},
      {"In tokens; mean over the layers, paired by seed. ± is the sample standard deviation over seeds."}};
  for (size_t i = 0; i < comparison.groups.size(); ++i) {
    if (i == comparison.baseline) continue;
    std::vector<int64_t> others, equals;
    for (const auto& layer : distance_differences(comparison.groups[i], baseline))
      (layer.other_heads ? others : equals).push_back(layer.layer);
    for (const auto& [heads, layers] : {std::pair{"others", &others}, {"as many", &equals}}) {
      if (layers->empty()) continue;
      const auto gap =
          paired_difference(mean_distances(comparison.groups[i], *layers), mean_distances(baseline, *layers));
      table.rows.push_back({name_cell(comparison, i),
                            {heads},
                            {layers_text(*layers)},
                            spread_cell(gap.difference, kDistanceDifference),
                            interval_cell(gap, kDistanceDifference)});
    }
  }
  return table;
}

}  // namespace prism
