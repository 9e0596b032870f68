// Multi-head attention of one layer: fused QKV projection, optional QK-norm, rotary encoding, attend(), output
// projection.
#pragma once

#include <memory>

#include "prism/attention/budget/head_budget.h"
#include "prism/attention/forward_context.h"
#include "prism/layers/linear.h"
#include "prism/layers/norm.h"

namespace prism {

/// What attention takes from the model rather than from its layer.
struct AttentionOptions {
  int64_t d_model = 0;
  double norm_eps = 1e-5;  ///< epsilon of the QK-norms
  bool is_causal = true;   ///< false: every token attends to all tokens of its row
  int64_t budgets = 0;     ///< number of layers with a head budget
};

class Attention {
 public:
  /// @param index   index of this layer, for the cache.
  /// @param rotary  shared by all layers of a model.
  /// @throws InputError if kv_heads does not divide heads.
  Attention(const AttentionOptions& options, const LayerConfig& config, size_t index,
            std::shared_ptr<RotaryCache> rotary);

  /// x [B, T, d_model] -> [B, T, d_model], x's dtype. @throws InputError for documents or lengths together with a
  /// cache.
  torch::Tensor operator()(const torch::Tensor& x_BTD, const ForwardContext& context) const;

  void visit(WeightVisitor& v) const;

  Linear qkv;           ///< [(heads + 2 kv_heads) head_dim, d_model]: query rows, key rows, value rows
  Linear out;           ///< [d_model, heads head_dim]; empty unless output_projection
  HeadBudget budget;    ///< empty unless the layer has one
  Norm q_norm, k_norm;  ///< [head_dim], applied to each head; empty unless qk_norm (arXiv 2010.04245, but with
                        ///< RMSNorm and one gain per feature)

 private:
  /// Normalises the queries and keys in the fused rows.
  torch::Tensor norm_heads(const torch::Tensor& fused_BTF) const;
  /// Rotates the queries and keys in the fused rows to their positions, if this layer is rotary.
  torch::Tensor turn(const torch::Tensor& fused_BTF, const ForwardContext& context) const;

  LayerConfig config_;
  bool is_causal_;
  size_t index_;
  std::shared_ptr<const RotaryPairs> pairs_;  ///< description of the rotation, for Prefill
  std::shared_ptr<RotaryCache> rotary_;
};

}  // namespace prism
