// Values of a tensor as a std::vector.
#pragma once

#include <torch/types.h>

#include <vector>

namespace prism {

/// All values of a tensor of any shape, dtype and device, in order.
inline std::vector<double> to_doubles(const torch::Tensor& tensor) {
  const auto values = tensor.to(torch::kCPU, torch::kDouble).contiguous();
  return {values.const_data_ptr<double>(), values.const_data_ptr<double>() + values.numel()};
}

}  // namespace prism
