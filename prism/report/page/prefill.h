// The cost and quality of sparse prefill, from the JSON lines of `prism bench prefill --json` and
// `prism eval --prefill ... --json`.
//
//   const PrefillRecords records = read_prefill_records({"speed.jsonl", "perplexity.jsonl"});
//   for (const Table& table : prefill_tables(records)) page += table_html(table);
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "prism/report/draw/number_text.h"
#include "prism/report/draw/plot_file.h"
#include "prism/report/tables/table.h"

namespace prism {

/// The name of a selector, with the settings in which its records differ; where more than three do, those alone whose
/// value is not the commonest.
struct PrefillMethodName {
  std::string selector;
  std::string text;    ///< "spectral, calibration off, p 0.9"
  std::string series;  ///< without the settings that control how much is kept: "spectral, calibration off"
};

/// Density and recall of one query head.
struct PrefillHeadShare {
  double density = 1, recall = 0;  ///< recall is 0 if not measured
};

/// A line of prism bench prefill.
struct PrefillSpeed {
  PrefillMethodName method;
  std::string heads;  ///< "structured, 8 on 2, 128 wide, bfloat16"
  int64_t tokens = 0;
  double density = 1, recall = 0, oracle_density = 0;                           ///< 0 if not measured
  double select_ms = 0, attend_ms = 0, dense_ms = 0, sdpa_ms = 0, speedup = 0;  ///< 0 if not measured
  std::optional<double> select_mib = {};  ///< peak memory that choosing took, in MiB
  std::vector<PrefillHeadShare> by_head;  ///< empty if not recorded
};

/// A line of prism eval.
struct PrefillLoss {
  PrefillMethodName method;
  /// "runs/long on book.txt, 9,000 tokens, windows of 4,096, bfloat16"; only losses of one setup are comparable.
  std::string setup;
  double density = 1, recall = 0, perplexity = 0;  ///< recall is 0 if not measured; perplexity is per token
  /// Share of right answers to the questions whose facts are more than half a window back, in percent.
  std::optional<double> distant_answers = {};
};

/// Formats of the numbers in tables and plots.
inline constexpr NumberStyle kDensityNumber = {3, false}, kRecallNumber = {4, false}, kPerplexityNumber = {4, false},
                             kAnswersNumber = {1, false}, kMillisecondsNumber = {2, false},
                             kMebibytesNumber = {2, false}, kIncreaseNumber = {2, true};

struct PrefillRecords {
  std::vector<PrefillSpeed> speeds;
  std::vector<PrefillLoss> losses;

  bool empty() const { return speeds.empty() && losses.empty(); }
  /// The distinct series of all records; their order gives the series numbers of the plots.
  std::vector<std::string> series() const;
  /// The perplexity of a setup with dense attention; 0 if no record has it, or it is infinite.
  double dense_perplexity(const std::string& setup) const;
};

/// A line of prism eval may also have answers to questions about what stands earlier in a window, each with its
/// distance in tokens and whether it is right: "answers":[[2100,1],[3000,0]].
/// @throws InputError for files that cannot be read or have no records, for lines of any other kind, and for fields
/// that are absent, of the wrong type or out of range.
PrefillRecords read_prefill_records(const std::vector<std::filesystem::path>& files);

/// Tables of times, perplexities, and shares kept by head: one row for each line, in order. Empty tables are omitted.
std::vector<Table> prefill_tables(const PrefillRecords& records);

/// Lines over density: the percentage by which perplexity is above that of dense attention (perplexity itself, where no
/// record has that) and distant answers, a plot for each setup, and recall, a plot for each kind of heads and length;
/// one line for each series. Lines over the length of the prompt, a plot for each kind of heads: the time
/// of choosing and attention, with dense attention's, and the time and peak memory of choosing; one line for each
/// selector and its settings. Only plots in which a line has two points.
std::vector<LabelledPlot> prefill_plots(const PrefillRecords& records);

}  // namespace prism
