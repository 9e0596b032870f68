// One decoder layer: x + attention(norm(x)), then x + mlp(norm(x)).
#pragma once

#include "prism/attention/attention.h"
#include "prism/layers/norm.h"

namespace prism {

class BlockImpl : public torch::nn::Module {
 public:
  BlockImpl(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
            std::shared_ptr<RotaryCache> rotary);

  /// @param residual  [B, T, d_model] float32.  @param type  dtype of the matmuls.
  torch::Tensor forward(const torch::Tensor& residual, const ForwardContext& context, torch::ScalarType type);

  RmsNorm attention_norm{nullptr}, mlp_norm{nullptr};
  Attention attention{nullptr};
  Mlp mlp{nullptr};
};
TORCH_MODULE(Block);

}  // namespace prism
