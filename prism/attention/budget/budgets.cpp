#include "prism/attention/budget/budgets.h"

#include <ATen/Functions.h>

#include <cmath>
#include <numbers>

#include "prism/core/error.h"
#include "prism/core/random.h"
#include "prism/kernels/to_vector.h"

namespace prism {
namespace {

std::vector<double> means_of(const std::vector<BudgetDecision>& decisions, size_t layers,
                             torch::Tensor BudgetDecision::*part) {
  if (decisions.empty()) return {};
  std::vector<double> means(layers, 1);
  for (size_t l = 0; l < decisions.size(); ++l)
    if ((decisions[l].*part).defined()) means[l] = (decisions[l].*part).mean(torch::kDouble).item<double>();
  return means;
}

}  // namespace

Budgets::Budgets(const BudgetSchedule& schedule, double progress, BudgetNoise noise)
    : schedule_(schedule),
      progress_(progress),
      tau_(schedule.tau(progress)),
      noise_(noise),
      decisions_(std::make_shared<std::vector<BudgetDecision>>()) {
  PRISM_ASSERT(progress >= 0 && progress <= 1, "budgets", "progress {}", progress);
}

Budgets::Budgets(double tau, BudgetNoise noise) : Budgets(BudgetSchedule(), 1, noise) {
  tau_ = tau;
}

torch::Tensor Budgets::normal(size_t layer, int64_t rows, int64_t heads, int64_t first) const {
  auto numbers_BH = at::empty({rows, heads}, torch::kDouble);
  auto* numbers = numbers_BH.mutable_data_ptr<double>();
  const uint64_t pass = mix64(mix64(static_cast<uint64_t>(noise_.step)) + layer);
  for (int64_t b = 0; b < rows; ++b) {
    Random random(noise_.seed, mix64(pass + static_cast<uint64_t>(noise_.first_row + first + b)));
    for (int64_t h = 0; h < heads; ++h) {
      // Box and Muller; 1 - u is above 0.
      const double radius = std::sqrt(-2 * std::log(1 - random.uniform()));
      numbers[b * heads + h] = radius * std::cos(2 * std::numbers::pi * random.uniform());
    }
  }
  return numbers_BH;
}

void Budgets::record(size_t layer, BudgetDecision decision) const {
  if (decisions_->size() <= layer) decisions_->resize(layer + 1);
  (*decisions_)[layer] = std::move(decision);
}

std::vector<int64_t> kept_heads(const torch::Tensor& kept_H) {
  std::vector<int64_t> heads;
  const auto kept = to_doubles(kept_H);
  for (size_t h = 0; h < kept.size(); ++h)
    if (kept[h] != 0) heads.push_back(static_cast<int64_t>(h));
  return heads;
}

std::vector<double> mean_shares(const std::vector<BudgetDecision>& decisions, size_t layers) {
  return means_of(decisions, layers, &BudgetDecision::share_B);
}

std::vector<double> mean_kept_shares(const std::vector<BudgetDecision>& decisions, size_t layers) {
  return means_of(decisions, layers, &BudgetDecision::kept_BH);
}

}  // namespace prism
