// Auxiliary loss terms that layers add during training.
//
//   Auxiliary auxiliary(/*progress=*/0.25);
//   context.auxiliary = &auxiliary;
//   auto loss = objective(decoder(tokens_BT, context));
//   if (auxiliary.loss().defined()) loss = loss + auxiliary.loss();
#pragma once

#include <torch/types.h>

namespace prism {

/// Collects the terms of one forward pass. If layers are recomputed in the backward pass, their terms still count once.
class Auxiliary {
 public:
  /// @param progress  training progress t / T, 0..1, for terms and noise that depend on it.
  explicit Auxiliary(double progress) : progress_(progress) {}

  double progress() const { return progress_; }
  /// @param term  differentiable scalar.
  void add(const torch::Tensor& term) { loss_ = loss_.defined() ? loss_ + term : term; }
  /// The sum of all terms; undefined if no layer added one.
  const torch::Tensor& loss() const { return loss_; }

 private:
  double progress_;
  torch::Tensor loss_;
};

}  // namespace prism
