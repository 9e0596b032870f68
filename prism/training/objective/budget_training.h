// What head budgets need of a training, for any objective: the progress of their schedules, the noise of each batch,
// and the shares of heads that they gave.
//
//   budgets_.set_step(step, *decoder);
//   auto budgets = budgets_.of_batch(batch);
//   context.budgets = &budgets;
//   decoder(tokens_BT, context);
//   budgets_.note(budgets);
#pragma once

#include <cstdint>
#include <vector>

#include "prism/attention/budget/budgets.h"
#include "prism/models/trunk.h"
#include "prism/training/recipe.h"

namespace prism {

class BudgetTraining {
 public:
  BudgetTraining() = default;
  explicit BudgetTraining(const Recipe& recipe) : recipe_(recipe) {}

  /// Takes the number of steps done, and gives the model the temperature that it has outside training.
  void set_step(int64_t step, Trunk& model);
  /// The share of the steps done, t / T.
  double progress() const { return progress_; }
  /// For a forward pass over a batch, counted from the beginning of the run.
  Budgets of_batch(int64_t batch) const;
  /// Takes what was decided in a pass.
  void note(const Budgets& budgets);
  /// The mean share of heads of each layer in the last pass; empty without head budgets.
  const std::vector<double>& head_share() const { return head_share_; }

 private:
  Recipe recipe_;
  double progress_ = 0;
  std::vector<double> head_share_;
};

}  // namespace prism
