// The feed-forward part of a block.
#pragma once

#include <string>
#include <vector>

#include "prism/layers/linear.h"

namespace prism {

struct FfnConfig {
  std::string kind = "swiglu";
  int64_t width = 0, depth = 1;
  bool bias = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("kind", kind, "swiglu: W_down (silu(W_gate x) * W_up x); relu: W_down max(0, W_up x), with depth and bias");
    v("width", width, "inner features");
    v("depth", depth, "relu: how many times so many inner features follow each other, each max(0, W x) of the last");
    v("bias", bias, "relu: every projection adds a bias");
  }
};

/// @throws InputError naming the layer for an unknown kind, a width or depth below 1, or what a kind does not have.
void check(const FfnConfig& config, size_t layer);

/// swiglu:  y = W_down (silu(W_gate x) * W_up x),  the gate and up projections fused. Source: arXiv 2002.05202.
/// relu:    y = W_down h_n + b_down,  h_1 = max(0, W_up x + b_up),  h_i = max(0, W_i h_(i-1) + b_i),  n = depth.
class MlpImpl : public torch::nn::Module {
 public:
  /// @param config  as check() wants it.
  MlpImpl(int64_t d_model, const FfnConfig& config);

  /// x [..., d_model] -> [..., d_model], x's dtype.
  /// @param hidden  if given, receives the features that each product behind the first reads.
  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr);

  Linear gate_up{nullptr};    ///< swiglu: [2 width, d_model], gate rows, then up rows
  std::vector<Linear> inner;  ///< relu: [width, d_model], then depth - 1 of [width, width]
  Linear down{nullptr};       ///< [d_model, width]
};
TORCH_MODULE(Mlp);

}  // namespace prism
