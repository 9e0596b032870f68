// RMSNorm as a module.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

namespace prism {

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(int64_t width, double eps);

  /// x [..., width] float32 -> the same shape in `out` (see kernels/rms_norm.h).
  torch::Tensor forward(const torch::Tensor& x, torch::ScalarType out);

  torch::Tensor weight;  ///< [width], ones at first

 private:
  double eps_;
};
TORCH_MODULE(RmsNorm);

}  // namespace prism
