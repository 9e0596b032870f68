// What sparse prompts cost and what they lose, from the JSON lines of `prism bench prefill --json` and
// `prism eval --prefill ... --json`.
//
//   const PrefillRecords records = read_prefill_records({"speed.jsonl", "perplexity.jsonl"});
//   for (const Table& table : prefill_tables(records)) page += table_html(table);
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "prism/report/plot.h"
#include "prism/report/table.h"

namespace prism {

/// A selector, and its settings where records differ in them.
struct PrefillMethodName {
  std::string selector;
  std::string text;    ///< "spectral, calibration off, p 0.9"
  std::string series;  ///< without the numbers that say how much is kept: "spectral, calibration off"
};

/// What is kept of a query head.
struct PrefillHeadShare {
  double density = 1, recall = 0;  ///< recall 0: not measured
};

/// A line of prism bench prefill.
struct PrefillSpeed {
  PrefillMethodName method;
  std::string heads;  ///< "structured, 8 on 2, 128 wide, bf16"
  int64_t tokens = 0;
  double density = 1, recall = 0, oracle_density = 0;                           ///< 0: not measured
  double select_ms = 0, attend_ms = 0, dense_ms = 0, sdpa_ms = 0, speedup = 0;  ///< sdpa_ms 0: not measured
  std::vector<PrefillHeadShare> by_head;                                        ///< empty: not recorded
};

/// A line of prism eval.
struct PrefillLoss {
  PrefillMethodName method;
  std::string setup;  ///< "runs/long on book.txt, windows of 4,096, bfloat16": what losses must share to be compared
  int64_t tokens = 0;
  double density = 1, recall = 0, perplexity = 0;  ///< recall 0: not measured; perplexity of a token
};

struct PrefillRecords {
  std::vector<PrefillSpeed> speeds;
  std::vector<PrefillLoss> losses;

  bool empty() const { return speeds.empty() && losses.empty(); }
  /// Of all records, each once: what the plots' lines are numbered by.
  std::vector<std::string> series() const;
};

/// @throws InputError for files that cannot be read or hold no record, and lines that are neither.
PrefillRecords read_prefill_records(const std::vector<std::filesystem::path>& files);

/// Times, perplexities, and what is kept of each head: a row for each line, in their order. Those that have rows.
std::vector<Table> prefill_tables(const PrefillRecords& records);

/// Perplexity over density, a line for each series, a plot for each setup; recall over density, a plot for each kind of
/// heads and length.
/// Only where a series has two densities.
std::vector<Plot> prefill_plots(const PrefillRecords& records);

}  // namespace prism
