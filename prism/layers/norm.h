// RMSNorm and LayerNorm as a module.
#pragma once

#include <string_view>

#include "prism/kernels/norm.h"
#include "prism/layers/weight_list.h"

namespace prism {

struct NormOptions {
  int64_t width = 0;
  double eps = 1e-5;
  NormKind kind = NormKind::rms;       ///< layer: also has a bias
  WeightRole role = WeightRole::gain;  ///< gain, or head_gain if it scales the features of a head
  bool is_post = false;                ///< as in NormSettings
};

/// The kind of a layer's norms. @param name  rms or layer.
inline NormKind norm_kind(std::string_view name) {
  return name == "layer" ? NormKind::layer : NormKind::rms;
}

class Norm {
 public:
  /// An empty norm without a weight.
  Norm() = default;
  explicit Norm(const NormOptions& options) : weight({options.width}, /*fill=*/1), options_(options) {
    if (options.kind == NormKind::layer) bias = Weight({options.width}, /*fill=*/0);
  }

  explicit operator bool() const { return static_cast<bool>(weight); }

  /// Adds the branch and normalises the sum to the dtype `out` (kernels/norm.h). An undefined branch counts as 0.
  NormedSum operator()(const torch::Tensor& x, const torch::Tensor& branch, torch::ScalarType out) const {
    return add_norm(x, branch,
                    {.kind = options_.kind,
                     .weight = weight.tensor(),
                     .bias = bias ? bias.tensor() : torch::Tensor(),
                     .eps = options_.eps,
                     .is_post = options_.is_post},
                    out);
  }

  void visit(WeightVisitor& v) const {
    v.weight("weight", weight, {.role = options_.role});
    v.weight("bias", bias, {.role = WeightRole::bias, .fan_in = options_.width});
  }

  Weight weight;  ///< [width], initially ones
  Weight bias;    ///< [width], initially zeros; empty for RMSNorm

 private:
  NormOptions options_;
};

}  // namespace prism
