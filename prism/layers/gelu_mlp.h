// The feed-forward part of GPT-2 and BERT.
#pragma once

#include "prism/layers/feed_forward.h"
#include "prism/layers/linear.h"

namespace prism {

/// y = W_down gelu(W_up x + b_up) + b_down,  gelu(a) = a Phi(a), where Phi is the distribution function of N(0, 1).
/// Computed exactly, not by the tanh approximation. Has biases if config.bias is set. Source: arXiv 1606.08415.
class GeluMlp : public FeedForward {
 public:
  GeluMlp(int64_t d_model, const FfnConfig& config);

  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr,
                        int64_t decoding = 0) const override;
  void visit(WeightVisitor& v) const override;
  WeightPair pair() override { return {up.weight, down.weight}; }

  Linear up;    ///< [width, d_model]
  Linear down;  ///< [d_model, width]
};

}  // namespace prism
