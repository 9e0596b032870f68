// Multi-head attention of one layer: fused projection, norms of queries and keys where wanted, rotation, attend(),
// output projection.
#pragma once

#include <memory>

#include "prism/attention/forward_context.h"
#include "prism/layers/linear.h"
#include "prism/layers/norm.h"

namespace prism {

class Attention {
 public:
  /// @param norm_eps  of the norms of queries and keys.
  /// @param index     which layer this is, for the cache.
  /// @param rotary    shared by all layers of a model.
  /// @throws InputError if kv_heads does not divide heads.
  Attention(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
            std::shared_ptr<RotaryCache> rotary);

  /// x [B, T, d_model] -> [B, T, d_model], x's dtype. @throws InputError for documents or lengths together with a
  /// cache.
  torch::Tensor operator()(const torch::Tensor& x_BTD, const ForwardContext& context) const;

  void visit(WeightVisitor& v) const;

  Linear qkv;              ///< [(heads + 2 kv_heads) head_dim, d_model]: query rows, key rows, value rows
  Linear out;              ///< [d_model, heads head_dim]; none without an output projection
  RmsNorm q_norm, k_norm;  ///< [head_dim], of each head alone; none without qk_norm (arXiv 2010.04245, with RMSNorm and
                           ///< a gain a feature)

 private:
  /// Fused rows with their queries and keys normed.
  torch::Tensor norm_heads(const torch::Tensor& fused_BTF) const;
  /// With those turned to their positions, where this layer turns them.
  torch::Tensor turn(const torch::Tensor& fused_BTF, const ForwardContext& context) const;

  LayerConfig config_;
  size_t index_;
  std::shared_ptr<const RotaryPairs> pairs_;  ///< what a Prefill is told of the rotation
  std::shared_ptr<RotaryCache> rotary_;
};

}  // namespace prism
