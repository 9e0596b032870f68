// One decoder layer: x + attention(norm(x)), then x + mlp(norm(x)); norm may be the identity.
#pragma once

#include "prism/attention/attention.h"
#include "prism/layers/norm.h"

namespace prism {

/// The residual stream, and what is still to be added to it: the next norm does both in one pass.
struct Residual {
  torch::Tensor stream_BTD;  ///< float32 (float64 for models of float64)
  torch::Tensor branch_BTD;  ///< in the dtype of the matmuls; undefined: nothing
};

/// What is to be added is added; then normed, or without a norm rounded, to the dtype of the matmuls.
NormedSum normed(RmsNorm& norm, const Residual& residual, torch::ScalarType type);

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
            std::shared_ptr<RotaryCache> rotary);

  /// @param type  dtype of the matmuls.
  Residual forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type);

  RmsNorm attention_norm{nullptr}, mlp_norm{nullptr};  ///< empty without norms
  Attention attention{nullptr};
  Mlp mlp{nullptr};

 private:
  size_t index_;
};
TORCH_MODULE(Block);

}  // namespace prism
