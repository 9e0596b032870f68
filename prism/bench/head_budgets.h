// The time of an attention part with head budgets, in turn with that of the same part without.
#pragma once

#include <cstdint>
#include <string>

#include "prism/bench/measure.h"

namespace prism {

/// The attention part of one layer of an encoder: projections with biases, full attention, output projection.
struct BudgetShape {
  int64_t batch = 32, tokens = 128, d_model = 768, heads = 8;
  double share = 0.5;  ///< s; each text keeps max(1, floor(s heads)) heads of its own
};

/// One line of a table, or of JSON.
struct BudgetTiming {
  std::string bench = "budgets", dtype;
  int64_t batch = 0, tokens = 0, d_model = 0, heads = 0;
  double share = 0;
  int64_t kept = 0;
  double budget_ms = 0, plain_ms = 0, time_saving = 0, flop_saving = 0, ratio = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("bench", bench, "budgets");
    v("dtype", dtype, "bfloat16 or float32");
    v("batch", batch, "texts");
    v("tokens", tokens, "tokens of a text");
    v("d_model", d_model, "width of the model");
    v("heads", heads, "heads");
    v("share", share, "share of heads s of every text");
    v("kept", kept, "heads that a text computes");
    v("budget_ms", budget_ms, "median milliseconds with budgets, their networks included");
    v("plain_ms", plain_ms, "median milliseconds without");
    v("time_saving", time_saving, "1 - budget_ms / plain_ms");
    v("flop_saving", flop_saving, "the same of the FLOPs of all products, the networks' included");
    v("ratio", ratio, "time_saving / flop_saving; absent without a saving of FLOPs");
  }
};

/// @throws InputError for a shape out of range.
void check(const BudgetShape& shape);

/// Measures inference. Which heads a text keeps differs from text to text.
/// @param dtype  of products. @throws InputError for a shape out of range.
BudgetTiming bench_head_budgets(const BudgetShape& shape, torch::ScalarType dtype, int64_t rounds);

}  // namespace prism
