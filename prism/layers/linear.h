// Linear projection: float32 weights, products in the dtype of the input.
//
//   Linear qkv(768, 3 * 768);
//   auto y = qkv(x);      // x bfloat16: the product runs on a bfloat16 copy, the gradient goes to the float32 weight
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include "prism/layers/cast_weight.h"

namespace prism {

class LinearImpl : public torch::nn::Module {
 public:
  LinearImpl(int64_t in, int64_t out, bool has_bias = false);

  /// x W^T + b: x [..., in] -> [..., out], x's dtype.
  torch::Tensor forward(const torch::Tensor& x);
  /// max(0, x W^T + b).
  torch::Tensor forward_relu(const torch::Tensor& x);

  /// The weight in the dtype of a product.
  const torch::Tensor& cast(torch::ScalarType type) { return cast_.get(weight, type); }

  torch::Tensor weight;  ///< [out, in]
  torch::Tensor bias;    ///< [out]; undefined: none

 private:
  CastWeight cast_;
};
TORCH_MODULE(Linear);

}  // namespace prism
