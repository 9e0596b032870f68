#include "prism/attention/budget/head_budget.h"

#include <ATen/Functions.h>

#include <cmath>
#include <functional>

#include "prism/core/error.h"
#include "prism/layers/pooling.h"

namespace prism {

HeadBudget::HeadBudget(int64_t d_model, const LayerConfig& layer, size_t index, int64_t budgets)
    : config_(layer.budget), heads_(layer.heads), budgets_(budgets), index_(index) {
  const auto network = [&](const char* name, int64_t out) {
    return Linear({.in = d_model, .out = {{{name}, out}}, .bias = true, .products = 0});
  };
  if (config_.kind == "learned") {
    hidden = network("hidden_proj", d_model);
    share = network("share_proj", 1);
  }
  if (config_.kind == "learned" || config_.kind == "fixed") scores = network("score_proj", layer.heads);
}

void HeadBudget::visit(WeightVisitor& v) const {
  v.module("hidden", "", hidden);
  v.module("share", "", share);
  v.module("scores", "", scores);
}

torch::Tensor HeadBudget::summary(const torch::Tensor& x_BTD, const ForwardContext& context) const {
  const auto type = scores.weight.tensor().scalar_type();
  const auto& lengths_B = config_.summary == "padded" ? torch::Tensor() : context.lengths_B;
  return mean_of_rows(x_BTD, context.prompts_B.defined() ? context.prompts_B : lengths_B, type);
}

torch::Tensor HeadBudget::loss(const torch::Tensor& s_B, const torch::Tensor& log_p_BH, const Budgets& budgets) const {
  const auto& schedule = budgets.schedule();
  const double sign = schedule.entropy_sign == "text" ? -1 : 1;
  // From log p, whose gradient is finite even where p is 0.
  auto loss_B = sign * schedule.beta(budgets.progress()) * (log_p_BH.exp() * log_p_BH).sum(1);
  if (config_.kind == "learned") {
    const auto violation_B = at::relu(schedule.s_min - s_B) + at::relu(s_B - schedule.s_max);
    const auto alpha_B = (schedule.alpha_base + violation_B).clamp_max(schedule.alpha_max);
    loss_B = loss_B + alpha_B * violation_B.square();
  }
  return loss_B.mean() / static_cast<double>(budgets_);
}

HeadWeights HeadBudget::operator()(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const {
  PRISM_CHECK(
      context.prefill == nullptr, "budget",
      "expected dense attention with head budgets; found a selector; leave it out, or set budget.kind to none.");
  PRISM_CHECK(
      context.rows.empty() || context.rows[0].prompt_length <= x_BTD.size(1), "budget",
      "expected a prompt in one piece with head budgets, which read all of it; found chunks of {} tokens; leave "
      "out the chunks.",
      x_BTD.size(1));
  if (context.cache == nullptr) return decide(x_BTD, context, tau);
  const int64_t sequence = context.rows[0].sequence;
  auto& decided = context.cache->head_weights(index_, sequence);
  if (context.cache->length(sequence) == 0) decided = decide(x_BTD, context, tau);
  PRISM_ASSERT(decided.weight_BH.defined(), "budget", "layer {}: a cache without what its prompt decided", index_);
  return decided;
}

BudgetDecision HeadBudget::read(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const {
  const int64_t batch = x_BTD.size(0);
  if (config_.kind == "random") {
    const auto options = x_BTD.options().dtype(torch::kFloat);
    return {at::full({batch}, config_.share, options), equal_probabilities(batch, options), {}};
  }
  const auto h_BD = summary(x_BTD, context);
  const auto s_B = config_.kind == "learned" ? share(hidden.relu(h_BD)).squeeze(1).sigmoid()
                                             : at::full({batch}, config_.share, h_BD.options());
  auto z_BH = scores(h_BD);
  if (context.auxiliary == nullptr) return {s_B, (z_BH / tau).log_softmax(1).exp(), {}};
  const auto& budgets = *context.budgets;
  const double sigma = budgets.schedule().sigma(budgets.progress());
  if (sigma > 0) z_BH = z_BH + (sigma * budgets.normal(index_, batch, heads_)).to(z_BH.options());
  const auto log_p_BH = (z_BH / tau).log_softmax(1);
  context.auxiliary->add(loss(s_B, log_p_BH, budgets));
  return {s_B, log_p_BH.exp(), {}};
}

void HeadBudget::choose(BudgetDecision& decision, const BudgetChange& change,
                        const std::function<torch::Tensor()>& draw_BH) const {
  using Heads = BudgetChange::Heads;
  auto& [s_B, p_BH, kept_BH] = decision;
  auto count_B = s_B.detach();
  torch::Tensor order_BH;  // of which the largest are kept
  if (change.heads == Heads::drawn) {
    p_BH = equal_probabilities(s_B.size(0), s_B.options());
    count_B = at::full_like(count_B, change.drawn_share);
  }
  if (config_.kind == "random" || change.heads == Heads::drawn) {
    order_BH = draw_BH();
  } else if (change.heads == Heads::shuffled) {
    p_BH = p_BH.gather(1, draw_BH().argsort(/*stable=*/true, 1, false));
  }
  if (!order_BH.defined()) order_BH = p_BH.detach();
  kept_BH = change.heads == Heads::all ? at::ones_like(p_BH, torch::kBool) : largest_heads(count_B, order_BH);
}

HeadWeights HeadBudget::decide(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const {
  const bool trains = context.auxiliary != nullptr;
  const Budgets* budgets = context.budgets;
  PRISM_ASSERT(!trains || budgets != nullptr, "budget", "training without Budgets");
  if (budgets != nullptr) tau = budgets->tau();
  const auto change = budgets != nullptr ? budgets->change_of(index_) : BudgetChange();
  PRISM_ASSERT(!trains || (change.heads == BudgetChange::Heads::own && std::isnan(change.gain)), "budget",
               "training with changed decisions");
  auto decision = read(x_BTD, context, tau);
  choose(decision, change, [&] {
    const int64_t draw = context.rows.empty() ? 0 : context.rows[0].draw;
    return (budgets != nullptr ? *budgets : Budgets(tau))
        .normal(index_, x_BTD.size(0), heads_, draw)
        .to(x_BTD.device());
  });
  const auto& [s_B, p_BH, kept_BH] = decision;
  if (budgets != nullptr) budgets->record(index_, {s_B.detach(), p_BH.detach(), kept_BH});
  const auto gain_B = std::isnan(change.gain) ? s_B : at::full_like(s_B, change.gain);
  auto weight_BH = gain_B.unsqueeze(1) * static_cast<double>(heads_) * p_BH;
  if (trains) {
    // Heads of equal p: training would ignore the draw if the others were not zeroed.
    if (config_.train_topk || config_.kind == "random") weight_BH = weight_BH * kept_BH;
    return {weight_BH, {}};
  }
  return {weight_BH, kept_BH.all().item<bool>() ? torch::Tensor() : kept_BH};
}

torch::Tensor HeadBudget::equal_probabilities(int64_t batch, const torch::TensorOptions& options) const {
  return at::full({batch, heads_}, 1.0 / static_cast<double>(heads_), options);
}

torch::Tensor largest_heads(const torch::Tensor& s_B, const torch::Tensor& value_BH) {
  const int64_t heads = value_BH.size(1);
  constexpr double kRounding = 1e-7;  // of a float32 share
  const auto count_B = ((s_B.to(torch::kDouble) + kRounding) * heads).floor().to(torch::kLong).clamp(1, heads);
  const auto order_BH = std::get<1>(at::sort(value_BH, /*stable=*/true, /*dim=*/1, /*descending=*/true));
  const auto rank_H = at::arange(heads, count_B.options());
  return at::zeros_like(order_BH, torch::kBool)
      .scatter(1, order_BH, (rank_H < count_B.unsqueeze(1)).expand({value_BH.size(0), heads}));
}

}  // namespace prism
