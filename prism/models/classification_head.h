// The classification head: pools the hidden states of each sequence and maps them to the logits of the classes.
#pragma once

#include <string>

#include "prism/layers/linear.h"

namespace prism {

/// How the hidden states of a sequence become one vector.
enum class Pooling {
  mean,  ///< the mean over the sequence's tokens
  first  ///< the hidden state of the first token
};
/// @param name  mean or first. @throws InputError for another.
Pooling find_pooling(const std::string& name);

// B batch, T positions, D d_model, C classes
class ClassificationHead {
 public:
  ClassificationHead(int64_t d_model, int64_t classes, Pooling pooling)
      : projection({.in = d_model, .out = {{{""}, classes}}, .bias = true, .products = 0}), pooling_(pooling) {}

  /// The pooled hidden states, [B, D] in the weights' dtype; 0 for a sequence without tokens.
  /// @param hidden_BTD  in the dtype of the matmuls.
  /// @param lengths_B   int32 or int64, tokens of each sequence; undefined: T.
  torch::Tensor pooled(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const;
  /// pooled W^T + b, [B, C] in the weights' dtype.
  torch::Tensor logits(const torch::Tensor& hidden_BTD, const torch::Tensor& lengths_B) const;
  /// Mean cross-entropy in nats. Differentiable. @param labels_B  int64, 0..C-1.
  static torch::Tensor loss(const torch::Tensor& logits_BC, const torch::Tensor& labels_B);

  /// The head computes once per sequence, so its products per token count as 0.
  void visit(WeightVisitor& v) const { projection.visit(v); }

  Linear projection;  ///< [C, D], with a bias

 private:
  Pooling pooling_;
};

}  // namespace prism
