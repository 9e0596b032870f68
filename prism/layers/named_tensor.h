// A tensor and its name, as files of weights and of optimizer states list them.
#pragma once

#include <torch/types.h>

#include <string>

namespace prism {

/// A tensor and its name in a file. Often a view of the rows of a fused weight.
struct NamedTensor {
  std::string name;
  torch::Tensor tensor;
};

}  // namespace prism
