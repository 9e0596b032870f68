// AdamW over float32 weights: LibTorch's fused kernel, clipping folded into it.
//
//   AdamW optimizer(decoder->named_parameters(), {.weight_decay = 0.1});
//   loss.backward();
//   optimizer.step(learning_rate, optimizer.gradient_norm());   // clips, updates, clears the gradients
#pragma once

#include <torch/nn/module.h>

#include <string>
#include <vector>

#include "prism/checkpoint/tensor_file.h"

namespace prism {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1, clip = 1.0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("beta1", beta1, "decay of the mean of gradients");
    v("beta2", beta2, "decay of the mean of squared gradients");
    v("epsilon", epsilon, "added to the root of the second");
    v("weight_decay", weight_decay, "on matrices only; 0 disables it");
    v("clip", clip, "largest norm of all gradients together; 0 disables clipping");
  }
};

/// @throws InputError for betas outside [0, 1), an epsilon of 0, or a negative decay or clip.
void check(const AdamWOptions& options);

/// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w = w - lr (m^ / (sqrt(v^) + eps) + decay w), with m^, v^
/// corrected for their start at zero. Source: arXiv 1711.05101; as in PyTorch,
/// the decay is scaled by the whole learning rate.
class AdamW {
 public:
  /// @param parameters  names key the state in checkpoints; those with two axes decay.
  /// @throws as check().
  AdamW(const torch::OrderedDict<std::string, torch::Tensor>& parameters, AdamWOptions options);

  /// Norm of all gradients together.
  double gradient_norm() const;
  /// Scales the gradients down to the clip if `norm` exceeds it, updates the weights, clears the gradients.
  void step(double learning_rate, double norm);

  /// Optimizer steps done: restored through set_steps().
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps);
  /// The two moments of every parameter, for checkpoints.
  std::vector<NamedTensor> state() const;

 private:
  struct Group {
    double weight_decay = 0;
    std::vector<std::string> names;
    std::vector<torch::Tensor> weights, mean, square, steps;
  };

  AdamWOptions options_;
  std::vector<Group> groups_;
  int64_t steps_ = 0;
};

}  // namespace prism
