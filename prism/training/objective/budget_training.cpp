#include "prism/training/objective/budget_training.h"

namespace prism {

void BudgetTraining::set_step(int64_t step, Trunk& model) {
  progress_ = static_cast<double>(step) / static_cast<double>(total_steps(recipe_));
  model.set_budget_tau(recipe_.train.budget.tau(progress_));
}

Budgets BudgetTraining::of_batch(int64_t batch) const {
  const int64_t accumulate = recipe_.train.accumulate;
  return {recipe_.train.budget,
          progress_,
          {.seed = static_cast<uint64_t>(recipe_.seed),
           .step = batch / accumulate,
           .first_row = batch % accumulate * recipe_.train.batch_rows}};
}

void BudgetTraining::note(const Budgets& budgets) {
  head_share_ = mean_shares(budgets.decisions(), recipe_.model.layers.size());
}

}  // namespace prism
