// What layers add to the loss while a model trains.
//
//   Auxiliary auxiliary(/*progress=*/0.25);
//   context.auxiliary = &auxiliary;
//   auto loss = objective(decoder(tokens_BT, context));
//   if (auxiliary.loss().defined()) loss = loss + auxiliary.loss();
#pragma once

#include <torch/types.h>

namespace prism {

/// Collects the terms of one forward pass. Where layers are recomputed, their terms are too, and count once.
class Auxiliary {
 public:
  /// @param progress  share of the training that is done, t / T, 0..1, for terms and noise that change with it.
  explicit Auxiliary(double progress) : progress_(progress) {}

  double progress() const { return progress_; }
  /// @param term  scalar; gradients flow through it.
  void add(const torch::Tensor& term) { loss_ = loss_.defined() ? loss_ + term : term; }
  /// The sum of all terms; undefined: no layer added one.
  const torch::Tensor& loss() const { return loss_; }

 private:
  double progress_;
  torch::Tensor loss_;
};

}  // namespace prism
