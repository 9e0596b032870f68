// A trained weight and its copy in the dtype of the matmuls, made again only when the weight has changed.
#pragma once

#include <ATen/record_function.h>
#include <torch/types.h>

namespace prism {

class CastWeight {
 public:
  /// The weight's values in `type`; the weight itself where that is its dtype.
  const torch::Tensor& get(const torch::Tensor& weight, torch::ScalarType type) {
    if (weight.scalar_type() == type) return weight;
    RECORD_FUNCTION("prism::cast_weight", {});
    if (!copy_.defined() || copy_.scalar_type() != type || copy_.device() != weight.device()) {
      copy_ = weight.detach().to(type);
    } else if (version_ != weight._version()) {
      copy_.copy_(weight.detach());
    }
    version_ = weight._version();
    return copy_;
  }

 private:
  torch::Tensor copy_;
  int64_t version_ = -1;
};

}  // namespace prism
