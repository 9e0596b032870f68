// Multi-head attention of one layer: fused projection, norms of queries and keys where wanted, rotation, attend(),
// output projection.
#pragma once

#include <memory>

#include "prism/attention/forward_context.h"
#include "prism/layers/linear.h"
#include "prism/layers/norm.h"

namespace prism {

class AttentionImpl : public torch::nn::Module {
 public:
  /// @param norm_eps  of the norms of queries and keys.
  /// @param index     which layer this is, for the cache.
  /// @param rotary    shared by all layers of a model.
  /// @throws InputError if kv_heads does not divide heads.
  AttentionImpl(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
                std::shared_ptr<RotaryCache> rotary);

  /// x [B, T, d_model] -> [B, T, d_model], x's dtype. @throws InputError for documents or lengths together with a
  /// cache.
  torch::Tensor forward(const torch::Tensor& x_BTD, const ForwardContext& context);

  Linear qkv{nullptr};  ///< [(heads + 2 kv_heads) head_dim, d_model]: query rows, key rows, value rows
  Linear out{nullptr};  ///< [d_model, heads head_dim]; empty without an output projection
  RmsNorm q_norm{nullptr}, k_norm{nullptr};  ///< [head_dim], of each head alone; empty without qk_norm
                                             ///< (arXiv 2010.04245, with RMSNorm and a gain a feature)

 private:
  /// Fused rows with their queries and keys normed.
  torch::Tensor norm_heads(const torch::Tensor& fused_BTF);
  /// With those turned to their positions, where this layer turns them.
  torch::Tensor turn(const torch::Tensor& fused_BTF, const ForwardContext& context);

  LayerConfig config_;
  size_t index_;
  RotaryPairs pairs_;
  std::shared_ptr<RotaryCache> rotary_;
};
TORCH_MODULE(Attention);

}  // namespace prism
