// Gated feed-forward parts: that of Llama, and Prisma's with a gate within the gate.
#pragma once

#include "prism/kernels/glu.h"
#include "prism/layers/feed_forward.h"
#include "prism/layers/linear.h"

namespace prism {

/// swiglu: y = W_down (silu(W_gate x) * W_up x); with a bias, each product has one.
/// g2lu:   y = W_down (silu(W_gate x * silu(W_inner x + b)) * W_up x), b = 0 unless gate_bias.
/// All projections of x are one product, except that a part which shares W_up with other layers computes it beside the
/// product of its own gates. Source: arXiv 2002.05202; the model card of Prisma, whose W1 to W4 are W_up, W_down,
/// W_gate and W_inner.
class GluMlp : public FeedForward {
 public:
  /// @param shares  W_up and W_down can be shared: pair() gives them.
  GluMlp(int64_t d_model, const FfnConfig& config, bool shares = false);

  torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr,
                        int64_t decoding = 0) const override;
  torch::Tensor gate(const torch::Tensor& x) const override;
  void visit(WeightVisitor& v) const override;
  WeightPair pair() override;

  Linear gates;       ///< [width, d_model] rows of W_gate, of W_inner, and of W_up unless that is shared
  Linear up;          ///< [width, d_model]; empty unless W_up can be shared
  Linear down;        ///< [d_model, width]
  Weight inner_bias;  ///< [width] b; empty unless gate_bias

 private:
  /// All projections of x that `gates` computes.
  torch::Tensor project(const torch::Tensor& x, int64_t decoding = 0) const;

  GluKind kind_;
};

}  // namespace prism
