// What head budgets save a trained classifier on real texts, beside a model of the same size without budgets.
//
//   const auto savings = bench_budget_savings(model.classifier, LabelledDataset("data/snli", "test"), {});
//   fmt::print("{:.1f}%\n", 100 * (1 - savings.with.ms / savings.without.ms));
#pragma once

#include <cstdint>

#include "prism/data/labelled/dataset.h"
#include "prism/models/classifier.h"

namespace prism {

struct SavingsOptions {
  int64_t batch = 32;    ///< texts per forward pass
  int64_t most = 8;      ///< batches that are measured, spread over all lengths
  int64_t examples = 0;  ///< of the first N examples; 0: all
  int64_t rounds = 5;    ///< passes over the batches
};

/// Cost of inference, mean per text except for the memory.
struct InferenceCost {
  int64_t parameters = 0;
  double attention_flops = 0, model_flops = 0, ms = 0;
  int64_t memory_bytes = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("parameters", parameters, "number of parameters");
    v("attention_flops", attention_flops, "FLOPs per text of the attention parts, head budgets included");
    v("model_flops", model_flops, "FLOPs per text of the whole model");
    v("ms", ms, "median milliseconds per text of the whole model");
    v("memory_bytes", memory_bytes,
      "bytes that tensors of a batch of the longest texts hold at their peak, without weights");
  }
};

struct BudgetSavings {
  int64_t texts = 0, batch = 0;
  double tokens = 0;  ///< mean length
  double share = 0, kept_share = 0;
  InferenceCost with, without;
  template <class Visitor>
  void visit(Visitor& v) {
    v("texts", texts, "number of texts measured");
    v("batch", batch, "texts per forward pass");
    v("tokens", tokens, "mean length of a text in tokens");
    v("share", share, "mean share of heads s of the layers with a budget");
    v("kept_share", kept_share, "mean share of heads that these layers compute, k / H");
    v("with", with, "the model");
    v("without", without, "a model of the same size without head budgets");
  }
};

/// Times both models in turn on the same batches. The model without budgets has random weights, which do not change its
/// time.
/// @throws InputError for a classifier without head budgets, or options out of range.
BudgetSavings bench_budget_savings(const Classifier& classifier, const LabelledDataset& data,
                                   const SavingsOptions& options);

}  // namespace prism
