// prism bench budgets: what head budgets save of the time of an attention part.
#include <fmt/format.h>

#include <string>
#include <vector>

#include "prism/bench/head_budgets.h"
#include "prism/cli/bench/bench.h"
#include "prism/cli/options/compute_options.h"
#include "prism/core/console.h"
#include "prism/core/fields.h"
#include "prism/kernels/compute_type.h"

namespace prism {
namespace {

constexpr const char* kBudgetsHelp = R"(
Times the attention part of an encoder's layer (projections, attention, output projection) with head budgets, in turn
with the same part without head budgets. Every text keeps the same number of heads, but not the same heads. `ratio` is
the share of time saved divided by the share of FLOPs saved; both count the networks that decide about heads.
)";
constexpr const char* kBudgetsExamples = R"(
  prism bench budgets --d-models 768 384 --tokens 128 512 --shares 0.125 0.25 0.5 0.75 1
  prism bench budgets --batch 1 --tokens 512
)";

struct BudgetWords {
  std::vector<int64_t> tokens = {128, 512}, d_models = {768};
  std::vector<double> shares = {0.125, 0.25, 0.5, 0.75, 1};
  std::vector<std::string> dtypes;
  BudgetShape shape;
  int64_t rounds = 15;
  int threads = 0;
  bool json = false;
};

void print_row(const BudgetTiming& row, bool json) {
  if (json) {
    fmt::print("{}\n", to_text(fields_to_json(row)));
  } else {
    fmt::print("{:<10}{:>6} x {:<6}{:>8}{:>6}{:>8.3f}{:>6}{:>12.3f}{:>12.3f}{:>11.1f}%{:>11.1f}%{:>9}\n", row.dtype,
               row.batch, row.tokens, row.d_model, row.heads, row.share, row.kept, row.budget_ms, row.plain_ms,
               100 * row.time_saving, 100 * row.flop_saving,
               row.flop_saving > 0 ? fmt::format("{:.2f}", row.ratio) : std::string("none"));
  }
  flush_output();
}

}  // namespace

int run_bench_budgets(const Arguments& arguments) {
  BudgetWords words;
  words.dtypes = {full_dtype("auto")};
  CLI::App app(std::string("Measure what head budgets save.\n") + kBudgetsHelp + kBudgetsExamples,
               "prism bench budgets");
  app.add_option("--d-models", words.d_models, "widths of the model")->capture_default_str();
  app.add_option("--heads", words.shape.heads, "heads of the layer")->capture_default_str();
  app.add_option("--tokens", words.tokens, "tokens of a text")->capture_default_str();
  app.add_option("--batch", words.shape.batch, "texts")->capture_default_str();
  app.add_option("--shares", words.shares, "shares of heads that every text keeps")->capture_default_str();
  app.add_option("--dtypes", words.dtypes, "dtypes of matrix products to measure: bfloat16, float32")
      ->capture_default_str();
  app.add_option("--rounds", words.rounds, "measured calls; a warm-up call comes before them")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  add_threads_option(app, words.threads);
  app.add_flag("--json", words.json, "one JSON object a line");
  if (!parse(app, arguments)) return 0;
  start_compute(words.threads);
  std::vector<BudgetShape> shapes;
  for (const int64_t width : words.d_models)
    for (const int64_t tokens : words.tokens)
      for (const double share : words.shares) {
        words.shape.d_model = width;
        words.shape.tokens = tokens;
        words.shape.share = share;
        check(words.shape);
        shapes.push_back(words.shape);
      }
  std::vector<torch::ScalarType> dtypes;
  for (const auto& dtype : words.dtypes) dtypes.push_back(find_compute_type(full_dtype(dtype)));
  CoreWait wait;
  if (!words.json)
    fmt::print("{:<10}{:>15}{:>8}{:>6}{:>8}{:>6}{:>12}{:>12}{:>12}{:>12}{:>9}\n", "dtype", "texts x tokens", "d_model",
               "heads", "share", "kept", "budget ms", "plain ms", "time saved", "FLOPs saved", "ratio");
  for (const auto dtype : dtypes)
    for (const auto& shape : shapes) print_row(bench_head_budgets(shape, dtype, words.rounds), words.json);
  return finish_bench(wait);
}

}  // namespace prism
