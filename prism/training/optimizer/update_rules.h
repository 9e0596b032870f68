// Update rules: AdamW, Muon, SGD. optimizer.h chooses the rule for each weight.
//
//   AdamW rule({{"norm.weight", weight}}, {.weight_decay = 0.1});
//   rule.update(/*learning_rate=*/6e-4, /*divisor=*/1.0, /*step=*/1);      // reads weight.grad()
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/layers/named_tensor.h"

namespace prism {

struct AdamWOptions {
  double beta1 = 0.9, beta2 = 0.95, epsilon = 1e-8, weight_decay = 0.1;
  template <class Visitor>
  void visit(Visitor& v) {
    v("beta1", beta1, "decay of the running mean of gradients");
    v("beta2", beta2, "decay of the running mean of squared gradients");
    v("epsilon", epsilon, "added to the square root of the mean of squared gradients");
    v("weight_decay", weight_decay, "weight decay of matrices and embeddings, not of gains and biases; 0 disables it");
  }
};

struct MuonOptions {
  double momentum = 0.95, weight_decay = 0.1;
  bool nesterov = true, per_head = false;
  int64_t iterations = 5;
  std::string scale = "adamw";
  template <class Visitor>
  void visit(Visitor& v) {
    v("momentum", momentum, "decay of the running sum of gradients");
    v("weight_decay", weight_decay, "weight decay; 0 disables it");
    v("nesterov", nesterov, "use Nesterov momentum");
    v("per_head", per_head,
      "update the query, key and value weights of each head as separate matrices; off: per layer");
    v("iterations", iterations, "Newton-Schulz iterations");
    v("scale", scale,
      "scale of an r x c update: adamw, 0.2 sqrt(max(r, c)), which suits learning rates of AdamW; or spectral, "
      "sqrt(max(1, r / c))");
  }
};

struct SgdOptions {
  double momentum = 0.9, weight_decay = 0;
  bool nesterov = false;
  template <class Visitor>
  void visit(Visitor& v) {
    v("momentum", momentum, "decay of the running sum of gradients; 0 disables it");
    v("weight_decay", weight_decay,
      "L2 penalty: weight_decay * weight is added to the gradients of matrices and embeddings, not of gains and "
      "biases; 0 disables it");
    v("nesterov", nesterov, "use Nesterov momentum");
  }
};

/// @throws InputError for betas or a momentum outside [0, 1), an epsilon of 0 or less, a negative decay or an unknown
///         scale.
void check(const AdamWOptions& options);
void check(const MuonOptions& options);
void check(const SgdOptions& options);

/// A weight as seen by an update rule.
struct TrainedWeight {
  std::string name;
  torch::Tensor tensor;
  bool decays = true;  ///< false: no weight decay
  /// The rows that are trained, if the others are fixed.
  std::optional<std::pair<int64_t, int64_t>> first_and_rows = {};

  torch::Tensor rows_of(const torch::Tensor& whole) const;
};

/// The weights of a rule.
struct WeightGroup {
  std::vector<TrainedWeight> given;
  std::vector<torch::Tensor> weights;  ///< the trained rows of each, which updates change in place

  void add(const TrainedWeight& weight);
  /// Of the trained rows.
  std::vector<torch::Tensor> gradients() const;
  /// A zero tensor for each weight.
  std::vector<torch::Tensor> zeros() const;
};

/// Updates a set of float32 weights from their gradients.
class UpdateRule {
 public:
  virtual ~UpdateRule() = default;

  /// @param divisor  gradients are divided by this first (clipping).
  /// @param step     number of the step, from 1.
  virtual void update(double learning_rate, double divisor, int64_t step) = 0;
  /// The rule's state tensors, named after their weights.
  virtual std::vector<NamedTensor> state() const = 0;
  const WeightGroup& weights() const { return all_; }

 protected:
  WeightGroup all_;
};

/// A rule whose update is one fused pass over memory: weights with weight decay, then weights without.
class FusedRule : public UpdateRule {
 public:
  std::vector<NamedTensor> state() const override;

 protected:
  struct Part {
    double weight_decay = 0;
    WeightGroup group;
    std::vector<std::vector<torch::Tensor>> state;  ///< for each name of a state, a tensor for each weight
  };

  /// @param state_names  endings of the state tensors' names, e.g. ".momentum"; empty for a rule without state.
  FusedRule(const std::vector<TrainedWeight>& weights, double weight_decay, std::vector<std::string> state_names);
  /// The divisor as the fused kernels take it.
  torch::Tensor divisor_tensor(double divisor) const;

  std::vector<Part> parts_;

 private:
  std::vector<std::string> state_names_;
};

/// m = b1 m + (1 - b1) g,  v = b2 v + (1 - b2) g^2,  w = w - lr (m^ / (sqrt(v^) + eps) + decay w), where m^ and v^ are
/// bias-corrected. Source: arXiv 1711.05101; as in PyTorch, the decay is scaled by the whole learning rate.
class AdamW : public FusedRule {
 public:
  /// @throws as check().
  AdamW(const std::vector<TrainedWeight>& weights, const AdamWOptions& options);
  void update(double learning_rate, double divisor, int64_t step) override;

 private:
  AdamWOptions options_;
  std::vector<std::vector<torch::Tensor>> steps_;  ///< for each part, the same tensor, the step, for each weight
};

/// d = g + decay w,  m = mu m + d,  w = w - lr m  (Nesterov: w - lr (d + mu m)). One fused pass over memory.
class Sgd : public FusedRule {
 public:
  /// @throws as check().
  Sgd(const std::vector<TrainedWeight>& weights, const SgdOptions& options);
  void update(double learning_rate, double divisor, int64_t step) override;

 private:
  SgdOptions options_;
};

/// `count` matrices of `rows` rows each, stacked in one weight.
struct RowBlocks {
  int64_t count = 1, rows = 0;
};

/// A weight and the matrices stacked in it, from the first row to the last.
struct BlockedWeight {
  TrainedWeight weight;
  std::vector<RowBlocks> blocks;
};

/// Steps along the nearest matrix with orthonormal rows or columns:
///
///   M = mu M + g,  u = orthogonalise(g + mu M) (Nesterov; else of M),  w = (1 - lr decay) w - lr scale u
///
/// Source: K. Jordan et al., Muon, 2024; the scale that fits AdamW's learning rates and the decay: arXiv 2502.16982.
/// Differs: gradients are not averaged into M by 1 - mu, which orthogonalisation would undo.
class Muon : public UpdateRule {
 public:
  /// @param type  dtype of the products: bfloat16 or float32.
  /// @throws as check().
  Muon(std::vector<BlockedWeight> weights, const MuonOptions& options, torch::ScalarType type);
  void update(double learning_rate, double divisor, int64_t step) override;
  std::vector<NamedTensor> state() const override;

 private:
  MuonOptions options_;
  torch::ScalarType type_;
  std::vector<std::vector<RowBlocks>> blocks_;
  std::vector<torch::Tensor> momentum_;
};

/// The approximate orthogonal factor of each matrix. For M = U S V^T the result is U S' V^T. After 5 iterations S' is
/// between about 0.7 and 1.2 where S is above 0.0015 |M|_F; smaller singular values stay smaller (0.001: 0.47).
///
///   X_0 = M / |M|_F,  A = X X^T,  X <- (a I + b A + c A^2) X,  (a, b, c) = (3.4445, -4.7750, 2.0315)
///
/// @param matrices  [N, r, c].  @param type  dtype of the products.
/// @return          [N, r, c] float32; zeros for a matrix of zeros.
/// Source: K. Jordan et al., Muon, 2024.
torch::Tensor orthogonalise(const torch::Tensor& matrices, int64_t iterations, torch::ScalarType type);

}  // namespace prism
