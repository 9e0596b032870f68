#include "prism/training/adamw.h"

#include <ATen/ops/_foreach_norm.h>
#include <ATen/ops/_fused_adamw.h>
#include <ATen/ops/stack.h>
#include <ATen/record_function.h>

#include "prism/core/error.h"

namespace prism {

void check(const AdamWOptions& options) {
  PRISM_CHECK(options.beta1 >= 0 && options.beta1 < 1 && options.beta2 >= 0 && options.beta2 < 1, "adamw",
              "expected betas within [0, 1); found {} and {}; change them.", options.beta1, options.beta2);
  PRISM_CHECK(options.epsilon > 0, "adamw",
              "expected an epsilon above 0, which weights without gradients are divided by; found {}; raise it.",
              options.epsilon);
  PRISM_CHECK(options.weight_decay >= 0 && options.clip >= 0, "adamw",
              "expected weight_decay and clip of at least 0; found {} and {}; raise them.", options.weight_decay,
              options.clip);
}

AdamW::AdamW(const torch::OrderedDict<std::string, torch::Tensor>& parameters, AdamWOptions options)
    : options_(options), groups_(2) {
  check(options);
  groups_[0].weight_decay = options.weight_decay;
  for (const auto& parameter : parameters) {
    auto& group = groups_[parameter.value().dim() >= 2 ? 0 : 1];
    const auto& weight = parameter.value();
    group.names.push_back(parameter.key());
    group.weights.push_back(weight);
    group.mean.push_back(torch::zeros(weight.sizes(), weight.options().requires_grad(false)));
    group.square.push_back(torch::zeros(weight.sizes(), weight.options().requires_grad(false)));
    group.steps.push_back(torch::zeros({}, weight.options().dtype(torch::kFloat).requires_grad(false)));
  }
}

double AdamW::gradient_norm() const {
  RECORD_FUNCTION("prism::gradient_norm", {});
  std::vector<torch::Tensor> gradients;
  for (const auto& group : groups_)
    for (const auto& weight : group.weights) gradients.push_back(weight.grad());
  return at::stack(at::_foreach_norm(gradients)).norm().item<double>();
}

void AdamW::step(double learning_rate, double norm) {
  RECORD_FUNCTION("prism::adamw", {});
  torch::NoGradGuard no_gradients;
  set_steps(steps_ + 1);
  // The kernel divides gradients by this as it reads them.
  const double excess = options_.clip > 0 && norm > options_.clip ? norm / options_.clip : 1.0;
  const auto divisor = torch::full({}, excess, torch::kFloat);
  for (auto& group : groups_) {
    if (group.weights.empty()) continue;
    std::vector<torch::Tensor> gradients;
    for (const auto& weight : group.weights) gradients.push_back(weight.grad());
    at::_fused_adamw_(group.weights, gradients, group.mean, group.square, /*max_exp_avg_sqs=*/{}, group.steps,
                      learning_rate, options_.beta1, options_.beta2, group.weight_decay, options_.epsilon,
                      /*amsgrad=*/false, /*maximize=*/false, divisor);
    for (auto& weight : group.weights) {
      // The fused kernel writes behind autograd's back; whoever caches a copy of the weight goes by its version.
      weight.unsafeGetTensorImpl()->bump_version();
      weight.mutable_grad().reset();
    }
  }
}

void AdamW::set_steps(int64_t steps) {
  steps_ = steps;
  for (auto& group : groups_)
    for (auto& count : group.steps) count.fill_(static_cast<double>(steps));
}

std::vector<NamedTensor> AdamW::state() const {
  std::vector<NamedTensor> tensors;
  for (const auto& group : groups_) {
    for (size_t i = 0; i < group.names.size(); ++i) {
      tensors.push_back({group.names[i] + ".mean", group.mean[i]});
      tensors.push_back({group.names[i] + ".square", group.square[i]});
    }
  }
  return tensors;
}

}  // namespace prism
