// One step of training: clip all gradients together, let each rule update its weights, clear the gradients.
//
//   Optimizer optimizer = make_optimizer(decoder->weights(), recipe.train.optimizer_options, torch::kBFloat16);
//   loss.backward();
//   optimizer.step(learning_rate, optimizer.gradient_norm());
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "prism/layers/weight_list.h"
#include "prism/training/optimizer/update_rules.h"

namespace prism {

struct OptimizerOptions {
  std::string kind = "adamw";
  double clip = 1.0;
  AdamWOptions adamw = {};
  MuonOptions muon = {};
  SgdOptions sgd = {};
  template <class Visitor>
  void visit(Visitor& v) {
    v("optimizer", kind, "adamw, muon (for matrices of layers; adamw for the rest) or sgd");
    v("clip", clip, "maximum norm of all gradients together; 0 disables clipping");
    v("adamw", adamw, "options of adamw, for all weights or for those that muon does not update");
    v("muon", muon, "options of muon, for matrices of layers");
    v("sgd", sgd, "options of sgd, for all weights");
  }
};

/// @throws InputError for an unknown kind or for values out of range.
void check(const OptimizerOptions& options);

class Optimizer {
 public:
  /// @param clip  as in OptimizerOptions.
  Optimizer(std::vector<std::unique_ptr<UpdateRule>> rules, double clip);

  /// Norm of all gradients together.
  double gradient_norm() const;
  /// Scales the gradients down to the clip if `norm` exceeds it, updates the weights, clears the gradients.
  void step(double learning_rate, double norm);

  /// Optimizer steps done; a resumed run restores them through set_steps().
  int64_t steps() const { return steps_; }
  void set_steps(int64_t steps) { steps_ = steps; }
  /// The state of all update rules, for checkpoints.
  std::vector<NamedTensor> state() const;

 private:
  std::vector<std::unique_ptr<UpdateRule>> rules_;
  double clip_;
  int64_t steps_ = 0;
};

/// The optimizer of a model's weights. Muon treats the query, key and value projections of a layer as separate
/// matrices, and gate and up too, although they are stored in fused weights.
/// @param type  dtype of muon's products: bfloat16 or float32.
/// @throws as check().
Optimizer make_optimizer(const std::vector<WeightEntry>& weights, const OptimizerOptions& options,
                         torch::ScalarType type);

}  // namespace prism
