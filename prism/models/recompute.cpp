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
    context.auxiliary = nullptr;  // the caller's may no longer exist when the block runs again
  }

  /// Runs the block. Returns its stream, its branch and its auxiliary loss, 0 if it has none.
  variable_list run(const Residual& residual) const {
    Auxiliary auxiliary(progress.value_or(0));
    ForwardContext own = context;
    if (progress) own.auxiliary = &auxiliary;
    const auto after = block->forward(residual, own, type);
    return {after.stream_BTD, after.branch_BTD,
            auxiliary.loss().defined() ? auxiliary.loss() : at::zeros({}, after.stream_BTD.options())};
  }

  std::shared_ptr<const Block> block;
  ForwardContext context;
  torch::ScalarType type;
  std::optional<double> progress;  ///< training progress; std::nullopt: the caller collects no auxiliary loss
};

struct RecomputeFunction : torch::autograd::Function<RecomputeFunction> {
  static variable_list forward(AutogradContext* context, const Variable& stream, const std::optional<Variable>& branch,
                               const c10::intrusive_ptr<Work>& work) {
    context->save_for_backward({stream, branch.value_or(Variable())});
    context->saved_data["work"] = c10::IValue::make_capsule(work);
    return work->run(Residual{stream, branch.value_or(Variable())});
  }

  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    RECORD_FUNCTION("prism::recompute", {});
    const auto work = c10::static_intrusive_pointer_cast<Work>(context->saved_data["work"].toCapsule());
    const auto saved = context->get_saved_variables();
    const auto leaf = [](const Variable& x) { return x.defined() ? x.detach().set_requires_grad(true) : x; };
    const Residual before{leaf(saved[0]), leaf(saved[1])};
    const torch::AutoGradMode with_gradients(true);
    auto after = work->run(before);
    auto given = gradients;
    if (!after[2].requires_grad()) after.pop_back(), given.pop_back();
    torch::autograd::backward(after, given);
    return {before.stream_BTD.grad(), before.branch_BTD.defined() ? before.branch_BTD.grad() : Variable(), Variable()};
  }
};

}  // namespace

Residual recomputed(const std::shared_ptr<Block>& block, const Residual& residual, const ForwardContext& context,
                    torch::ScalarType type) {
  PRISM_ASSERT(context.cache == nullptr && context.probe == nullptr, "recompute", "unexpected cache or probe");
  const auto branch = residual.branch_BTD.defined() ? std::optional(residual.branch_BTD) : std::nullopt;
  const auto after =
      RecomputeFunction::apply(residual.stream_BTD, branch, c10::make_intrusive<Work>(block, context, type));
  if (context.auxiliary != nullptr) context.auxiliary->add(after[2]);
  return {after[0], after[1]};
}

}  // namespace prism
