#include "prism/attention/budget/budget_config.h"

#include <cmath>
#include <utility>

#include "prism/core/error.h"

namespace prism {

void check(const BudgetConfig& config, size_t layer) {
  PRISM_CHECK(config.kind == "none" || config.kind == "learned" || config.kind == "fixed" || config.kind == "random",
              "model",
              "layer {}: expected budget.kind none, learned, fixed or random; found \"{}\"; choose one of them.", layer,
              config.kind);
  PRISM_CHECK(config.share > 0 && config.share <= 1, "model",
              "layer {}: expected a budget.share above 0 and at most 1; found {}; change it.", layer, config.share);
  PRISM_CHECK(
      config.kind != "learned" || config.share == 1, "model",
      "layer {}: expected no budget.share with budget.kind learned, which decides the share; found {}; leave it "
      "out, or set the kind to fixed.",
      layer, config.share);
  PRISM_CHECK(config.summary == "tokens" || config.summary == "padded", "model",
              "layer {}: expected budget.summary tokens or padded; found \"{}\"; choose one of them.", layer,
              config.summary);
}

double BudgetSchedule::tau(double progress) const {
  return tau_min + (tau_max - tau_min) * std::exp(-gamma * progress);
}

double BudgetSchedule::sigma(double progress) const {
  return sigma_max * (1 - progress);
}

double BudgetSchedule::beta(double progress) const {
  return beta_max * (2 * progress - 1);
}

void check(const BudgetSchedule& schedule) {
  constexpr double kLargest = 1000;  // far beyond what is of use; infinity in float32 is far beyond this
  PRISM_CHECK(0 <= schedule.s_min && schedule.s_min <= schedule.s_max && schedule.s_max <= 1, "train",
              "expected 0 <= train.budget.s_min <= train.budget.s_max <= 1; found {} and {}; change them.",
              schedule.s_min, schedule.s_max);
  PRISM_CHECK(kLeastTau <= schedule.tau_min && schedule.tau_min <= schedule.tau_max && schedule.tau_max <= kMostTau,
              "train",
              "expected {} <= train.budget.tau_min <= train.budget.tau_max <= {}; found {} and {}; change them.",
              kLeastTau, kMostTau, schedule.tau_min, schedule.tau_max);
  for (const auto& [name, value] : {std::pair{"alpha_base", schedule.alpha_base},
                                    {"alpha_max", schedule.alpha_max},
                                    {"beta_max", schedule.beta_max},
                                    {"sigma_max", schedule.sigma_max},
                                    {"gamma", schedule.gamma}})
    PRISM_CHECK(value >= 0 && value <= kLargest, "train",
                "train.budget.{}: expected from 0 to {}; found {}; change it.", name, kLargest, value);
  PRISM_CHECK(schedule.alpha_base <= schedule.alpha_max, "train",
              "expected train.budget.alpha_base <= train.budget.alpha_max; found {} and {}; change them.",
              schedule.alpha_base, schedule.alpha_max);
  PRISM_CHECK(schedule.entropy_sign == "text" || schedule.entropy_sign == "printed", "train",
              "train.budget.entropy_sign: expected text or printed; found \"{}\"; choose one of them.",
              schedule.entropy_sign);
}

}  // namespace prism
