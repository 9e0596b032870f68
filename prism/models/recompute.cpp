#include "prism/models/recompute.h"

#include <ATen/ops/zeros.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include <optional>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Everything the backward pass needs besides tensors.
struct Work : torch::CustomClassHolder {
  Work(std::shared_ptr<const Block> block_given, const ForwardContext& context_given, torch::ScalarType type_given)
      : block(std::move(block_given)), context(context_given), type(type_given) {
    if (context.auxiliary != nullptr) progress = context.auxiliary->progress();
    if (context.budgets != nullptr) budgets = *context.budgets;
    // The caller's may no longer exist when the block runs again.
    context.auxiliary = nullptr;
    context.budgets = nullptr;
  }

  /// Runs the block. Returns its stream, its auxiliary loss (0 if it has none), and its branch or cast, if any.
  variable_list run(const Residual& residual) const {
    Auxiliary auxiliary(progress.value_or(0));
    ForwardContext own = context;
    if (progress) own.auxiliary = &auxiliary;
    auto own_budgets = budgets;
    if (own_budgets) own.budgets = &*own_budgets;
    const auto after = block->forward(residual, own, type);
    variable_list results = {after.stream_BTD,
                             auxiliary.loss().defined() ? auxiliary.loss() : at::zeros({}, after.stream_BTD.options())};
    for (const auto& part : {after.branch_BTD, after.cast_BTD})
      if (part.defined()) results.push_back(part);
    PRISM_ASSERT(results.size() <= 3, "recompute", "a residual with a branch and a cast");
    return results;
  }

  /// The residual in the results of run().
  Residual residual(const variable_list& results) const {
    Residual after{results[0], {}, {}};
    if (results.size() > 2) (block->is_post() ? after.cast_BTD : after.branch_BTD) = results[2];
    return after;
  }

  std::shared_ptr<const Block> block;
  ForwardContext context;
  torch::ScalarType type;
  std::optional<Budgets> budgets;  ///< shares its decisions with the caller's
  std::optional<double> progress;  ///< training progress; std::nullopt: the caller collects no auxiliary loss
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static variable_list forward(AutogradContext* context, const Variable& stream, const std::optional<Variable>& branch,
                               const std::optional<Variable>& cast, const c10::intrusive_ptr<Work>& work) {
    const Residual before{stream, branch.value_or(Variable()), cast.value_or(Variable())};
    context->save_for_backward({before.stream_BTD, before.branch_BTD, before.cast_BTD});
    context->saved_data["work"] = c10::IValue::make_capsule(work);
    return work->run(before);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::recompute", {});
    const auto work = c10::static_intrusive_pointer_cast<Work>(context->saved_data["work"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto leaf = [](const Variable& x) { return x.defined() ? x.detach().set_requires_grad(true) : x; };
    const variable_list leaves = {leaf(saved[0]), leaf(saved[1]), leaf(saved[2])};
    const torch::AutoGradMode with_gradients(true);
    auto after = work->run({leaves[0], leaves[1], leaves[2]});
    if (!after[1].requires_grad()) {
      after.erase(after.begin() + 1);
      gradients.erase(gradients.begin() + 1);
    }
    torch::autograd::backward(after, gradients);
    const auto gradient = [](const Variable& x) { return x.defined() ? x.grad() : Variable(); };
    return {gradient(leaves[0]), gradient(leaves[1]), gradient(leaves[2]), Variable()};
  }
};

}  // namespace

Residual recomputed(const std::shared_ptr<Block>& block, const Residual& residual, const ForwardContext& context,
                    torch::ScalarType type) {
  PRISM_ASSERT(context.cache == nullptr && context.probe == nullptr, "recompute", "unexpected cache or probe");
  // Without an input that requires gradients (a fixed embedding), autograd would not call the backward pass.
  const auto stream =
      residual.stream_BTD.requires_grad() ? residual.stream_BTD : residual.stream_BTD.detach().set_requires_grad(true);
  const auto given = [](const torch::Tensor& x) { return x.defined() ? std::optional(x) : std::nullopt; };
  const auto work = c10::make_intrusive<Work>(block, context, type);
  const auto after = RecomputeFunction::apply(stream, given(residual.branch_BTD), given(residual.cast_BTD), work);
  if (context.auxiliary != nullptr) context.auxiliary->add(after[1]);
  return work->residual(after);
}

}  // namespace prism
