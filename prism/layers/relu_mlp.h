// The feed-forward part of the ladder: one or more hidden ReLU layers.
#pragma once

#include <vector>

#include "prism/layers/feed_forward.h"
#include "prism/layers/linear.h"

namespace prism {

/// y = W_down h_n + b_down,  h_1 = max(0, W_up x + b_up),  h_i = max(0, W_i h_(i-1) + b_i),  n = depth. Has biases if
/// config.bias is set.
class ReluMlp : public FeedForward {
 public:
  ReluMlp(int64_t d_model, const FfnConfig& config);

  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr,
                        int64_t decoding = 0) const override;
  void visit(WeightVisitor& v) const override;
  WeightPair pair() override { return {inner.front().weight, down.weight}; }

  std::vector<Linear> inner;  ///< [width, d_model], then depth - 1 of [width, width]
  Linear down;                ///< [d_model, width]
};

}  // namespace prism
