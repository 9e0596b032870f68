// The language-model head: hidden states to logits and losses.
#pragma once

#include "prism/layers/linear.h"

namespace prism {

// B batch, T positions, V vocabulary
class LanguageModelHead {
 public:
  /// A head of its own. Weights are not initialised.
  LanguageModelHead(int64_t d_model, int64_t vocab_size) : projection_(d_model, vocab_size) {}
  /// A head that is the embedding's matrix. @param embedding  [V, d_model], shared.
  explicit LanguageModelHead(const Weight& embedding);

  /// hidden [..., d_model] -> [..., V] in the weights' dtype.
  torch::Tensor logits(const torch::Tensor& hidden) const;
  /// Mean cross-entropy over the labels that are not -1, nats, and the z-loss of that weight (kernels/cross_entropy.h).
  /// Gradients flow.
  torch::Tensor loss(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT, double z_loss = 0) const;
  /// Cross-entropy of each label, [B, T] float32 on the CPU, nats, 0 for labels of -1. No gradients.
  torch::Tensor token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT) const;

  void visit(WeightVisitor& v) const { projection_.visit(v); }
  const Weight& weight() const { return projection_.weight; }

 private:
  Linear projection_;
};

}  // namespace prism
