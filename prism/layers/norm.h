// RMSNorm as a module.
#pragma once

#include "prism/kernels/rms_norm.h"
#include "prism/layers/weight_list.h"

namespace prism {

class RmsNorm {
 public:
  /// An empty norm without a weight.
  RmsNorm() = default;
  /// @param role  gain, or head_gain if it scales the features of a head.
  RmsNorm(int64_t width, double eps, WeightRole role = WeightRole::gain)
      : weight({width}, /*fill=*/1), eps_(eps), role_(role) {}

  explicit operator bool() const { return static_cast<bool>(weight); }

  /// Returns x + branch and its norm in the dtype `out` (see kernels/rms_norm.h). An undefined branch counts as 0.
  NormedSum operator()(const torch::Tensor& x, const torch::Tensor& branch, torch::ScalarType out) const {
    return add_rms_norm(x, branch, weight.tensor(), eps_, out);
  }

  void visit(WeightVisitor& v) const { v.weight("weight", weight, {.role = role_}); }

  Weight weight;  ///< [width], initially ones

 private:
  double eps_ = 0;
  WeightRole role_ = WeightRole::gain;
};

}  // namespace prism
