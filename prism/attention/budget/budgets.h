// What head budgets need from the training, and what they decide, for one forward pass.
//
//   Budgets budgets(schedule, /*progress=*/0.25, {.seed = 1, .step = 250});
//   context.budgets = &budgets;
//   classifier(tokens_BT, context);
//   budgets.decisions()[layer].share_B                       // the share of heads of each text
#pragma once

#include <torch/types.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "prism/attention/budget/budget_config.h"

namespace prism {

// B batch, H heads

/// What a layer's budget decides. Without gradients.
struct BudgetDecision {
  torch::Tensor share_B;         ///< s, equation 7
  torch::Tensor probability_BH;  ///< p, equation 9
  torch::Tensor kept_BH;         ///< bool, the heads of equation 16
};

/// Identifies the random numbers of a pass: those of row b in layer l are a function of (seed, step, l, first_row + b).
struct BudgetNoise {
  uint64_t seed = 0;
  int64_t step = 0, first_row = 0;
};

/// What a measurement changes in a layer's decisions, to tell which part of a trained budget does what.
struct BudgetChange {
  enum class Heads {
    own,       ///< those that the budget chooses
    all,       ///< all heads, each with its own weight w
    drawn,     ///< `drawn_share` of the heads, at random, with p = 1 / H
    shuffled,  ///< as many as the budget chooses, with the same weights, but at random
  };
  Heads heads = Heads::own;
  double drawn_share = 1;
  double gain = NAN;  ///< the s in w = s H p; NaN: the text's own. The number of heads stays.

  bool is_none() const { return heads == Heads::own && std::isnan(gain); }
  bool is_random() const { return heads == Heads::drawn || heads == Heads::shuffled; }
};

class Budgets {
 public:
  /// For training. @param progress  t / T, 0..1, where t is the number of steps done.
  Budgets(const BudgetSchedule& schedule, double progress, BudgetNoise noise);

  /// Outside training: records what a pass decides at this temperature. @param noise  draws random heads.
  explicit Budgets(double tau, BudgetNoise noise = {});

  double tau() const { return tau_; }
  const BudgetSchedule& schedule() const { return schedule_; }
  double progress() const { return progress_; }
  /// Standard normal numbers [rows, heads], float64. @param first  the first of the rows.
  torch::Tensor normal(size_t layer, int64_t rows, int64_t heads, int64_t first = 0) const;

  /// The decisions by layer; those of layers without a budget are empty. Copies of this object share them.
  const std::vector<BudgetDecision>& decisions() const { return *decisions_; }
  void record(size_t layer, BudgetDecision decision) const;

  /// Changes the decisions of passes outside training and without gradients. @param by_layer  empty, or one for each of
  /// the model's layers.
  void change(std::vector<BudgetChange> by_layer) { changes_ = std::move(by_layer); }
  BudgetChange change_of(size_t layer) const { return changes_.empty() ? BudgetChange() : changes_.at(layer); }

 private:
  BudgetSchedule schedule_;
  double progress_, tau_;
  BudgetNoise noise_;
  std::shared_ptr<std::vector<BudgetDecision>> decisions_;
  std::vector<BudgetChange> changes_;
};

/// The heads that a row of BudgetDecision::kept_BH keeps, ascending.
std::vector<int64_t> kept_heads(const torch::Tensor& kept_H);

/// The mean share of heads of each of a model's layers, 1 for layers without a budget. Empty without decisions.
std::vector<double> mean_shares(const std::vector<BudgetDecision>& decisions, size_t layers);
/// The same of the share of heads that are kept, k / H. With grouped queries more are computed: a group whole if it has
/// a kept head.
std::vector<double> mean_kept_shares(const std::vector<BudgetDecision>& decisions, size_t layers);

}  // namespace prism
