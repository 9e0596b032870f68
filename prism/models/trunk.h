// The stack of blocks over an embedding: tokens in, hidden states out. What reads those is a head's
// (language_model_head.h).
//
//   Trunk trunk(config);
//   initialise(weights_of(trunk), initialisation_of(config), seed);
//   auto hidden = trunk.forward(tokens_BT, ForwardContext{});
#pragma once

#include <memory>
#include <vector>

#include "prism/layers/embedding.h"
#include "prism/layers/initialise.h"
#include "prism/models/block.h"
#include "prism/models/model_config.h"

namespace prism {

/// What a config says of how weights are drawn.
Initialisation initialisation_of(const ModelConfig& config);

// B batch, T positions
class Trunk {
 public:
  /// @param config  complete. Weights are not initialised.
  explicit Trunk(ModelConfig config);

  /// tokens_BT int64 -> hidden [B, T, d_model] after the last norm, in the compute dtype. A cache in `context` is
  /// extended.
  /// @throws InputError for ids outside the vocabulary or more positions than the context.
  torch::Tensor forward(const torch::Tensor& tokens_BT, const ForwardContext& context) const;

  /// The dtype of matmuls and attention: bfloat16 or float32 (float64 for models of float64). Weights, residual stream,
  /// norms and losses stay in the weights' dtype.
  void set_compute_type(torch::ScalarType type) { compute_type_ = type; }
  torch::ScalarType compute_type() const { return compute_type_; }
  /// Whether layers compute their activations again in the backward pass instead of keeping them (recompute.h).
  void set_recompute(bool recomputes) { recomputes_ = recomputes; }
  /// Where the weights are. Tokens and contexts may be elsewhere: they are copied there.
  torch::Device device() const { return embedding.weight.tensor().device(); }

  void visit(WeightVisitor& v) const;
  const ModelConfig& config() const { return config_; }

  Embedding embedding;
  Embedding positions;  ///< [context, d_model]; none unless they are learned
  std::vector<std::shared_ptr<Block>> blocks;
  RmsNorm norm;  ///< none without a final norm

 private:
  /// The residual stream before the first layer. @param past  tokens before these.
  torch::Tensor embed(const torch::Tensor& tokens_BT, const ForwardContext& context, int64_t past) const;

  ModelConfig config_;
  torch::ScalarType compute_type_ = torch::kFloat;
  bool recomputes_ = false;
};

}  // namespace prism
