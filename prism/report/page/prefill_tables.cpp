#include "prism/report/page/prefill.h"

#include <fmt/format.h>

#include <algorithm>

namespace prism {
namespace {

constexpr NumberStyle kRatio = {2, false};

constexpr const char* kNamesNote =
    "A selector's name has the settings in which its rows differ; where these are many, those alone that do not have "
    "the commonest value.";

/// A measured number; kNoValue if it was not measured.
TableCell measured_cell(double value, NumberStyle style) {
  return {value == 0 ? kNoValue : number_text(value, style)};
}

Table speed_table(const PrefillRecords& records) {
  Table table{
      "Sparse prefill: time",
      {{"selector"},
       {"heads"},
       {"tokens", true},
       {"density", true},
       {"recall", true},
       {"oracle's density", true},
       {"select ms", true},
       {"select MiB", true},
       {"attend ms", true},
       {"dense ms", true},
       {"LibTorch ms", true},
       {"times as fast as dense", true}},
      {},
      {"Medians of alternating runs. Density: share of the visible blocks that is kept. Recall: share of the exact "
       "attention in the kept blocks, on sampled rows. The oracle reaches the same recall with the fewest blocks. MiB: "
       "peak memory that choosing takes.",
       kNamesNote}};
  for (const auto& row : records.speeds)
    table.rows.push_back({{row.method.text},
                          {row.heads},
                          {grouped(row.tokens)},
                          {number_text(row.density, kDensityNumber)},
                          measured_cell(row.recall, kRecallNumber),
                          measured_cell(row.oracle_density, kDensityNumber),
                          measured_cell(row.select_ms, kMillisecondsNumber),
                          {row.select_mib ? number_text(*row.select_mib, kMebibytesNumber) : kNoValue},
                          measured_cell(row.attend_ms, kMillisecondsNumber),
                          measured_cell(row.dense_ms, kMillisecondsNumber),
                          measured_cell(row.sdpa_ms, kMillisecondsNumber),
                          measured_cell(row.speedup, kRatio)});
  return table;
}

Table loss_table(const PrefillRecords& records) {
  Table table{
      "Sparse prefill: perplexity",
      {{"selector"}, {"model and text"}, {"density", true}, {"recall", true}, {"perplexity", true}, {"Δ %", true}},
      {},
      {"Perplexity per token. Δ: increase over dense attention where all of the second column is the same.",
       kNamesNote}};
  const bool has_answers = std::any_of(records.losses.begin(), records.losses.end(),
                                       [](const PrefillLoss& row) { return row.distant_answers.has_value(); });
  if (has_answers) {
    table.columns.push_back({"distant answers %", true});
    table.notes.push_back("Distant answers: share of right answers about facts that are more than half a window back.");
  }
  for (const auto& row : records.losses) {
    const double dense = records.dense_perplexity(row.setup);
    auto& cells = table.rows.emplace_back();
    cells = {{row.method.text},
             {row.setup},
             {number_text(row.density, kDensityNumber)},
             measured_cell(row.recall, kRecallNumber),
             {number_text(row.perplexity, kPerplexityNumber)},
             {dense == 0 ? kNoValue : minus_signs(number_text(100 * (row.perplexity / dense - 1), kIncreaseNumber))}};
    if (has_answers)
      cells.push_back({row.distant_answers ? number_text(*row.distant_answers, kAnswersNumber) : kNoValue});
  }
  return table;
}

/// For records whose heads are few enough for one column each.
Table heads_table(const PrefillRecords& records) {
  constexpr size_t kMostHeads = 16;
  Table table{"Sparse prefill: heads",
              {{"selector"}, {"heads"}, {"tokens", true}},
              {},
              {"For each query head, the density, then the recall of the kept blocks. Heads count from 0."}};
  size_t most = 0;
  for (const auto& row : records.speeds)
    if (row.by_head.size() <= kMostHeads) most = std::max(most, row.by_head.size());
  for (size_t h = 0; h < most; ++h) table.columns.push_back({fmt::format("head {}", h), true});
  for (const auto& row : records.speeds) {
    if (row.by_head.empty() || row.by_head.size() > kMostHeads) continue;
    auto& cells = table.rows.emplace_back();
    cells = {{row.method.text}, {row.heads}, {grouped(row.tokens)}};
    for (size_t h = 0; h < most; ++h) {
      const auto* head = h < row.by_head.size() ? &row.by_head[h] : nullptr;
      cells.push_back({head == nullptr    ? kNoValue
                       : head->recall > 0 ? fmt::format("{:.3f} {:.3f}", head->density, head->recall)
                                          : number_text(head->density, kDensityNumber)});
    }
  }
  return table;
}

}  // namespace

std::vector<Table> prefill_tables(const PrefillRecords& records) {
  std::vector<Table> tables = {speed_table(records), loss_table(records), heads_table(records)};
  std::erase_if(tables, [](const Table& table) { return table.rows.empty(); });
  return tables;
}

}  // namespace prism
