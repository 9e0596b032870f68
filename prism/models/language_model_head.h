// The language-model head: maps hidden states to logits and losses.
#pragma once

#include "prism/kernels/cross_entropy.h"
#include "prism/layers/linear.h"

namespace prism {

// B batch, T positions, N rows, V vocabulary
class LanguageModelHead {
 public:
  /// A head with its own weight, which is not initialised.
  LanguageModelHead(int64_t d_model, int64_t vocab_size) : projection_(d_model, vocab_size) {}
  /// A tied head, which shares the embedding's weight. @param embedding  [V, d_model].
  explicit LanguageModelHead(const Weight& embedding);
  /// A head with its own weight that only training uses.
  static LanguageModelHead for_training(int64_t d_model, int64_t vocab_size);

  /// hidden [..., d_model] -> [..., V] in the weights' dtype.
  torch::Tensor logits(const torch::Tensor& hidden) const;
  /// The logits that token_losses() scores: [N, d_model] -> [N, V]. With frozen weights they are products of prompts,
  /// in float32; those of logits() are products of decoding.
  torch::Tensor scored_logits(const torch::Tensor& hidden) const;
  /// Mean cross-entropy in nats over the labels that are not -1, plus the z-loss with weight z_loss
  /// (kernels/cross_entropy.h). Differentiable.
  torch::Tensor loss(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT, double z_loss = 0) const;
  /// Cross-entropy of each label in nats, [B, T] float32 on the CPU; 0 for labels of -1. Not differentiable.
  torch::Tensor token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT) const;
  /// Cross-entropy of each label, and whether it is the likeliest token, on the CPU. Not differentiable.
  TokenScores token_scores(const torch::Tensor& hidden_ND, const torch::Tensor& labels_N) const;

  void visit(WeightVisitor& v) const { projection_.visit(v); }
  const Weight& weight() const { return projection_.weight; }

 private:
  TokenScores scores(const torch::Tensor& hidden_ND, const torch::Tensor& labels_N, bool with_top) const;

  Linear projection_;
};

}  // namespace prism
