// One decoder layer: x + attention(norm(x)), then x + mlp(norm(x)); norm may be the identity.
#pragma once

#include <memory>

#include "prism/attention/attention.h"
#include "prism/layers/feed_forward.h"
#include "prism/layers/norm.h"

namespace prism {

/// The residual stream, and what is still to be added to it: the next norm does both in one pass.
struct Residual {
  torch::Tensor stream_BTD;  ///< float32 (float64 for models of float64)
  torch::Tensor branch_BTD;  ///< in the dtype of the matmuls; undefined: nothing
};

/// What is to be added is added; then normed, or without a norm rounded, to the dtype of the matmuls.
NormedSum normed(const RmsNorm& norm, const Residual& residual, torch::ScalarType type);

class Block {
 public:
  Block(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index, std::shared_ptr<RotaryCache> rotary);
  virtual ~Block() = default;

  /// @param type  dtype of the matmuls.
  virtual Residual forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const;

  void visit(WeightVisitor& v) const;

  RmsNorm attention_norm, mlp_norm;  ///< none without norms
  Attention attention;
  std::shared_ptr<FeedForward> mlp;

 private:
  size_t index_;
};

}  // namespace prism
