// RMSNorm as a module.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "prism/kernels/rms_norm.h"

namespace prism {

class RmsNormImpl : public torch::nn::Module {
 public:
  RmsNormImpl(int64_t width, double eps);

  /// x + branch and its norm in the dtype `out` (see kernels/rms_norm.h); without a branch x and its norm.
  NormedSum forward(const torch::Tensor& x, const torch::Tensor& branch, torch::ScalarType out);

  torch::Tensor weight;  ///< [width], ones at first

 private:
  double eps_;
};
TORCH_MODULE(RmsNorm);

}  // namespace prism
