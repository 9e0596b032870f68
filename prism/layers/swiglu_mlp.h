// The gated feed-forward part of Llama.
#pragma once

#include "prism/layers/feed_forward.h"
#include "prism/layers/linear.h"

namespace prism {

/// y = W_down (silu(W_gate x) * W_up x), with fused gate and up projections. Source: arXiv 2002.05202.
class SwigluMlp : public FeedForward {
 public:
  SwigluMlp(int64_t d_model, const FfnConfig& config);

  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr) const override;
  void visit(WeightVisitor& v) const override;

  Linear gate_up;  ///< [2 width, d_model]: gate rows, then up rows
  Linear down;     ///< [d_model, width]
};

}  // namespace prism
