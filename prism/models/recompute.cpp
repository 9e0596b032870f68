#include "prism/models/recompute.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// What the backward pass needs besides tensors.
struct Work : torch::CustomClassHolder {
  Work(Block block_given, ForwardContext context_given, torch::ScalarType type_given)
      : block(std::move(block_given)), context(std::move(context_given)), type(type_given) {}
  Block block;
  ForwardContext context;
  torch::ScalarType type;
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static variable_list forward(AutogradContext* context, const Variable& stream, const std::optional<Variable>& branch,
                               const c10::intrusive_ptr<Work>& work) {
    context->save_for_backward({stream, branch.value_or(Variable())});
    context->saved_data["work"] = c10::IValue::make_capsule(work);
    const auto after = work->block(Residual{stream, branch.value_or(Variable())}, work->context, work->type);
    return {after.stream_BTD, after.branch_BTD};
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_FUNCTION("prism::recompute", {});
    const auto work = c10::static_intrusive_pointer_cast<Work>(context->saved_data["work"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto leaf = [](const Variable& x) { return x.defined() ? x.detach().set_requires_grad(true) : x; };
    const Residual before{leaf(saved[0]), leaf(saved[1])};
    const torch::AutoGradMode with_gradients(true);
    const auto after = work->block(before, work->context, work->type);
    torch::autograd::backward({after.stream_BTD, after.branch_BTD}, {gradients[0], gradients[1]});
    return {before.stream_BTD.grad(), before.branch_BTD.defined() ? before.branch_BTD.grad() : Variable(), Variable()};
  }
};

}  // namespace

Residual recomputed(Block block, const Residual& residual, const ForwardContext& context, torch::ScalarType type) {
  PRISM_ASSERT(context.cache == nullptr && context.probe == nullptr, "recompute", "a cache or a probe");
  const auto branch = residual.branch_BTD.defined() ? std::optional(residual.branch_BTD) : std::nullopt;
  const auto after =
      RecomputeFunction::apply(residual.stream_BTD, branch, c10::make_intrusive<Work>(std::move(block), context, type));
  return {after[0], after[1]};
}

}  // namespace prism
