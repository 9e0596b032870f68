#include "prism/attention/budget/head_budget.h"

#include <ATen/Functions.h>

#include "prism/attention/budget/choose_heads.h"
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

torch::Tensor HeadBudget::draw(const ForwardContext& context, int64_t batch) const {
  const int64_t first = context.rows.empty() ? 0 : context.rows[0].draw;
  return (context.budgets != nullptr ? *context.budgets : Budgets(/*tau=*/1)).normal(index_, batch, heads_, first);
}

BudgetDecision HeadBudget::read(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const {
  const int64_t batch = x_BTD.size(0);
  if (config_.kind == "random") {
    const auto options = x_BTD.options().dtype(torch::kFloat);
    return {at::full({batch}, config_.share, options),
            at::full({batch, heads_}, 1.0 / static_cast<double>(heads_), options),
            {}};
  }
  const auto h_BD = summary(x_BTD, context);
  const auto s_B = config_.kind == "learned" ? share(hidden.relu(h_BD)).squeeze(1).sigmoid()
                                             : at::full({batch}, config_.share, h_BD.options());
  auto z_BH = scores(h_BD);
  if (context.auxiliary == nullptr) return {s_B, (z_BH / tau).softmax(1), {}};
  const auto& budgets = *context.budgets;
  const double sigma = budgets.schedule().sigma(budgets.progress());
  if (sigma > 0) z_BH = z_BH + (sigma * budgets.normal(index_, batch, heads_)).to(z_BH.options());
  const auto log_p_BH = (z_BH / tau).log_softmax(1);
  context.auxiliary->add(loss(s_B, log_p_BH, budgets));
  return {s_B, log_p_BH.exp(), {}};
}

HeadWeights HeadBudget::decide(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const {
  const Budgets* budgets = context.budgets;
  if (budgets != nullptr) tau = budgets->tau();
  const bool trains = context.auxiliary != nullptr;
  if (!trains && !at::GradMode::is_enabled()) return decide_without_gradients(x_BTD, context, tau);
  PRISM_ASSERT(!trains || budgets != nullptr, "budget", "training without Budgets");
  PRISM_ASSERT(budgets == nullptr || budgets->change_of(index_).is_none(), "budget",
               "changed decisions in training or with gradients");
  auto [s_B, p_BH, kept_BH] = read(x_BTD, context, tau);
  kept_BH = largest_heads(s_B.detach(),
                          config_.kind == "random" ? draw(context, x_BTD.size(0)).to(x_BTD.device()) : p_BH.detach());
  if (budgets != nullptr) budgets->record(index_, {s_B.detach(), p_BH.detach(), kept_BH});
  auto weight_BH = s_B.unsqueeze(1) * static_cast<double>(heads_) * p_BH;
  if (trains) {
    // Heads of equal p: training would ignore the draw if the others were not zeroed.
    if (config_.train_topk || config_.kind == "random") weight_BH = weight_BH * kept_BH;
    return {weight_BH, {}};
  }
  return {weight_BH, kept_BH.all().item<bool>() ? torch::Tensor() : kept_BH};
}

HeadWeights HeadBudget::decide_without_gradients(const torch::Tensor& x_BTD, const ForwardContext& context,
                                                 double tau) const {
  BudgetScores read{.batch = x_BTD.size(0), .heads = heads_, .share = config_.share};
  if (config_.kind != "random") {
    const auto h_BD = summary(x_BTD, context);
    if (config_.kind == "learned") read.share_B1 = share(hidden.relu(h_BD));
    read.heads_BH = scores(h_BD);
  }
  const auto* budgets = context.budgets;
  const auto change = budgets != nullptr ? budgets->change_of(index_) : BudgetChange();
  if (config_.kind == "random" || change.is_random()) read.drawn_BH = draw(context, read.batch);
  auto chosen = choose_heads(read, tau, change, x_BTD.device());
  if (budgets != nullptr) budgets->record(index_, chosen.decision);
  return {chosen.weight_BH, chosen.keeps_all ? torch::Tensor() : chosen.decision.kept_BH};
}

}  // namespace prism
