// Multi-head attention of one layer: fused QKV projection, optional QK-norm, rotary encoding, attend(), output
// projection.
#pragma once

#include <memory>

#include "prism/attention/budget/head_budget.h"
#include "prism/attention/budget/packed_heads.h"
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
  /// The head counts of fused rows.
  struct Heads {
    int64_t queries = 0, groups = 0;
  };
  /// Normalises the queries and keys in fused rows and rotates them to their positions, as far as this layer does.
  torch::Tensor prepare(const torch::Tensor& fused_BTF, Heads heads, const TokenPositions& places) const;
  torch::Tensor norm_heads(const torch::Tensor& fused_BTF, Heads heads) const;
  /// The input of attend() for fused rows.
  AttentionInput input_of(const torch::Tensor& fused_BTF, Heads heads) const;
  /// Multiplies the heads' outputs by the output projection, if there is one.
  torch::Tensor projected(const torch::Tensor& out_BTF, const ForwardContext& context) const;
  /// With a cache and no budget: all sequences in the products, each with its own keys in attention.
  torch::Tensor over_sequences(const torch::Tensor& x_BTD, const ForwardContext& context) const;
  /// With a cache and a budget: what a budget decides, and the heads it computes, are a sequence's own.
  torch::Tensor each_sequence(const torch::Tensor& x_BTD, const ForwardContext& context) const;
  /// Without a cache, or for one sequence of a layer with a budget.
  torch::Tensor over_rows(const torch::Tensor& x_BTD, const ForwardContext& context) const;
  /// The output from the kept heads alone, without computing the others. Without gradients.
  torch::Tensor over_kept_heads(const torch::Tensor& x_BTD, const HeadWeights& chosen,
                                const ForwardContext& context) const;
  /// Stores the keys and values of a sequence's kept heads, and replaces them by all that the cache holds.
  void append_to_cache(AttentionInput& input, const ForwardContext& context) const;

  LayerConfig config_;
  bool is_causal_;
  size_t index_;
  std::shared_ptr<const RotaryPairs> pairs_;  ///< description of the rotation, for Prefill
  std::shared_ptr<RotaryCache> rotary_;
  mutable HeadPanels panels_;
};

}  // namespace prism
