#include "prism/analysis/gradients.h"

#include <utility>

#include "prism/core/error.h"
#include "prism/kernels/euclidean_norm.h"

namespace prism {

GradientSum::GradientSum(std::vector<WeightEntry> weights) : weights_(std::move(weights)) {
  clear_gradients(weights_);
}

void GradientSum::add(const torch::Tensor& loss, int64_t labels) {
  // Summed over labels, so that a batch counts in proportion to its labels.
  (loss * static_cast<double>(labels)).backward();
  labels_ += labels;
}

std::vector<ParameterGradient> GradientSum::norms() const {
  PRISM_ASSERT(labels_ > 0, "gradients", "no loss was added");
  const torch::NoGradGuard no_gradients;
  std::vector<ParameterGradient> found;
  for (const auto& entry : weights_)
    for (const auto& tensor : entry.tensors) {
      const auto& values = entry.weight.tensor();
      auto& parameter = found.emplace_back();
      parameter.name = tensor.name;
      if (entry.layer()) {
        parameter.layer = static_cast<int64_t>(*entry.layer());
        parameter.part = tensor.part;
      }
      if (values.grad().defined())
        parameter.gradient = euclidean_norm(tensor.of(values.grad())).item<double>() / static_cast<double>(labels_);
      parameter.weight = euclidean_norm(tensor.of(values)).item<double>();
    }
  return found;
}

}  // namespace prism
