// How well a classifier labels texts: accuracy, balanced accuracy, macro-F1, and the confusion matrix.
//
//   LabelledDataset data("data/snli", "test");
//   const auto labelled = label_examples(model.classifier, data, {});
//   const ClassificationScores scores = score(*labelled);
//   fmt::print("{:.4f}\n", scores.accuracy);
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/fields.h"
#include "prism/data/labelled/dataset.h"
#include "prism/models/batch.h"
#include "prism/models/classifier.h"

namespace prism {

/// What a classifier says of each example of a split, in the order of the split.
struct LabelledExamples {
  int64_t classes = 0;
  std::vector<int32_t> labels, predicted;
  std::vector<double> nats;  ///< cross-entropy of each example, float32 values
  int64_t cut = 0;           ///< number of examples that were cut to the context
  /// By layer, on the CPU; the rows are the examples. Empty without head budgets.
  std::vector<BudgetDecision> budgets;
};

struct LabelOptions {
  int64_t batch = 32, examples = 0, seed = 1;
  std::string budget_heads = "own", budget_gain = "own";
  /// True if head budgets do not decide all as they were trained to.
  bool changes_budgets() const { return budget_heads != "own" || budget_gain != "own"; }
  template <class Visitor>
  void visit(Visitor& v) {
    v("batch", batch, "classification: texts per forward pass");
    v("examples", examples, "classification: label only the first N examples; 0: all");
    v("seed", seed, "seed of layers that draw random heads (budget.kind random, budget_heads random and shuffled)");
    v("budget_heads", budget_heads,
      "heads that a trained head budget computes. own: those that it chooses; all: all heads, each with its own "
      "weight; random: as many as it computes on average in the layer (rounded), drawn anew for each text, with p = 1 "
      "/ H; shuffled: as many as it chooses, with the same weights, drawn anew for each text. Later layers read what "
      "changed heads write, and decide by that");
    v("budget_gain", budget_gain,
      "the share s by which a head budget multiplies the outputs of heads. own: that of the text; mean: the layer's "
      "mean over all texts");
  }
};

/// What a classifier says of a batch.
struct Classified {
  torch::Tensor log_probability_BC;     ///< on the CPU, float64
  std::vector<int32_t> predicted;       ///< the most probable class of each text; of equal ones, the first
  std::vector<BudgetDecision> budgets;  ///< by layer; empty without head budgets
};
/// @param noise    for layers that draw random heads.
/// @param changes  to what head budgets decide, by layer; empty: none.
Classified classify(const Classifier& classifier, const ExampleTensors& batch, BudgetNoise noise = {},
                    std::vector<BudgetChange> changes = {});

/// Labels the examples with the most probable class; of equal ones, the first. Texts longer than the context are cut.
/// With `budget_heads` random or `budget_gain` mean, all examples are labelled twice: the first pass finds the means.
/// @param on_progress  if given, called with the number of examples done and of all.
/// @throws InputError  for a batch of no texts, a negative number of examples, an unknown choice, or a change of head
///                     budgets asked of a model without.
/// @return             std::nullopt if a stop signal arrived (core/stop.h).
std::optional<LabelledExamples> label_examples(const Classifier& classifier, const LabelledDataset& data,
                                               const LabelOptions& options,
                                               const std::function<void(int64_t, int64_t)>& on_progress = {});

/// With C[i][j] the examples of class i that were labelled j:
///
///   accuracy           sum_i C[i][i] / examples
///   recall of class i  C[i][i] / sum_j C[i][j],   precision of class j  C[j][j] / sum_i C[i][j]
///   balanced accuracy  the mean recall of the classes that have examples
///   F1                 2 C[i][i] / (sum_j C[i][j] + sum_j C[j][i]), the harmonic mean of precision and recall
///   macro-F1           the mean F1 of the classes that have examples or were predicted
///
/// as scikit-learn computes them.
struct ClassificationScores {
  int64_t examples = 0;
  double accuracy = 0, balanced_accuracy = 0, macro_f1 = 0;
  double loss = 0;                              ///< mean cross-entropy, nats per example
  std::vector<std::vector<int64_t>> confusion;  ///< [classes][classes], rows are labels
  /// Recall, precision and F1 of each class; NaN where they are undefined.
  struct Class {
    double recall = 0, precision = 0, f1 = 0;
  };
  std::vector<Class> by_class;
};
/// @param labelled  with at least one example.
ClassificationScores score(const LabelledExamples& labelled);

/// 1 for each example that was labelled correctly, 0 for the others.
std::vector<double> right_answers(const LabelledExamples& labelled);

}  // namespace prism
