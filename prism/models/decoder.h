// The decoder-only language model over a list of layers.
//
//   Decoder decoder(config);
//   decoder->initialise(seed);
//   auto hidden = decoder(tokens_BT, ForwardContext{});
//   auto loss = decoder->loss(hidden, labels_BT);          // training: all logits never exist at once
//   auto next = decoder->logits(hidden.narrow(1, T - 1, 1));  // generation: one row
#pragma once

#include "prism/layers/embedding.h"
#include "prism/models/block.h"
#include "prism/models/model_config.h"

namespace prism {

// B batch, T positions, V vocabulary
class DecoderImpl : public torch::nn::Module {
 public:
  /// @param config  complete. Weights are not initialised.
  explicit DecoderImpl(ModelConfig config);

  /// Weights as the config's `initialisation` says (model_config.h), gains 1. Sources: gpt2 Radford et al. 2019,
  /// section 2.3; ladder the code of "multi-head attention", whose feed-forward layers are as LibTorch's Linear begins.
  void initialise(uint64_t seed);

  /// The dtype of matmuls and attention: bfloat16 or float32 (float64 for models of float64). Weights, residual stream,
  /// norms and losses stay in the weights' dtype.
  void set_compute_type(torch::ScalarType type) { compute_type_ = type; }
  torch::ScalarType compute_type() const { return compute_type_; }
  /// Whether layers compute their activations again in the backward pass instead of keeping them (recompute.h).
  void set_recompute(bool recomputes) { recomputes_ = recomputes; }

  /// tokens_BT int64 -> hidden [B, T, d_model] after the last norm, in the compute dtype. A cache in `context` is
  /// extended.
  /// @throws InputError for ids outside the vocabulary or more positions than the context.
  torch::Tensor forward(const torch::Tensor& tokens_BT, const ForwardContext& context);

  /// hidden [..., d_model] -> [..., V] float32.
  torch::Tensor logits(const torch::Tensor& hidden);
  /// Where the weights are. Tokens, labels and contexts may be elsewhere: they are copied there.
  torch::Device device() const { return embedding->weight.device(); }

  /// Mean cross-entropy over the labels that are not -1, nats, and the z-loss of that weight (kernels/cross_entropy.h).
  /// Gradients flow.
  torch::Tensor loss(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT, double z_loss = 0);
  /// Cross-entropy of each label, [B, T] float32 on the CPU, nats, 0 for labels of -1. No gradients.
  torch::Tensor token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT);

  const ModelConfig& config() const { return config_; }

  Embedding embedding{nullptr};
  Embedding positions{nullptr};  ///< [context, d_model]; empty unless they are learned
  std::vector<Block> blocks;
  RmsNorm norm{nullptr};  ///< empty without a final norm
  Linear head{nullptr};   ///< empty when tied

 private:
  /// The residual stream before the first layer. @param past  tokens before these.
  torch::Tensor embed(const torch::Tensor& tokens_BT, const ForwardContext& context, int64_t past);
  /// The head's weight and its copy in the compute dtype.
  const torch::Tensor& head_weight() const;
  const torch::Tensor& head_cast();

  ModelConfig config_;
  torch::ScalarType compute_type_ = torch::kFloat;
  bool recomputes_ = false;
};
TORCH_MODULE(Decoder);

}  // namespace prism
