// The feed-forward part of a block.
#pragma once

#include <string>

#include "prism/layers/linear.h"

namespace prism {

struct FfnConfig {
  std::string kind = "swiglu";
  int64_t width = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "swiglu: W_down (silu(W_gate x) * W_up x)");
    v("width", width, "inner features");
  }
};

/// SwiGLU with the gate and up projections fused: y = W_down (silu(W_gate x) * W_up x). Source: arXiv 2002.05202.
class MlpImpl : public torch::nn::Module {
 public:
  /// @throws InputError for an unknown kind or a width below 1.
  MlpImpl(int64_t d_model, const FfnConfig& config);

  /// x [..., d_model] -> [..., d_model], x's dtype.
  torch::Tensor forward(const torch::Tensor& x);

  Linear gate_up{nullptr};  ///< [2 width, d_model]: gate rows, then up rows
  Linear down{nullptr};     ///< [d_model, width]
};
TORCH_MODULE(Mlp);

}  // namespace prism
