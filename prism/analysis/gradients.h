// The norms of a model's gradients beside those of its values.
//
//   GradientSum sum(decoder->weights());
//   for (const auto& batch : batches) sum.add(decoder->head.loss(hidden_of(batch), labels), labels.numel());
//   for (const auto& parameter : sum.norms()) fmt::print("{}: {:.3g}\n", parameter.name, parameter.gradient);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

/// Euclidean norms of one parameter, a tensor of a model file.
struct ParameterGradient {
  std::string name;
  std::optional<int64_t> layer;     ///< std::nullopt: outside the layers
  std::optional<std::string> part;  ///< of a layer, as FileTensor::part
  double gradient = 0, weight = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("name", name, "name of the parameter in model.safetensors");
    v("layer", layer, "layer, counted from 0; not for parameters outside the layers");
    v("part", part, "name of the parameter within its layer");
    v("gradient", gradient, "norm of the gradient of the mean loss");
    v("weight", weight, "norm of the values");
  }
};

/// Adds up the gradients of the losses of batches.
class GradientSum {
 public:
  /// Clears the weights' gradients. @param weights  whose gradients are measured.
  explicit GradientSum(std::vector<WeightEntry> weights);

  /// Computes the gradients of a batch. @param loss  scalar, the mean over `labels` labels.
  void add(const torch::Tensor& loss, int64_t labels);

  /// The gradients of the mean loss over the labels of all batches. Those of parameters without influence are 0.
  std::vector<ParameterGradient> norms() const;

 private:
  std::vector<WeightEntry> weights_;
  int64_t labels_ = 0;
};

}  // namespace prism
