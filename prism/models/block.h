// One decoder layer: x + attention(norm(x)), then x + mlp(norm(x)); norm may be the identity.
#pragma once

#include <memory>

#include "prism/attention/attention.h"
#include "prism/layers/feed_forward.h"
#include "prism/layers/norm.h"

namespace prism {

/// The residual stream and a branch that is not yet added to it. The next norm adds it and normalises in one pass.
struct Residual {
  torch::Tensor stream_BTD;  ///< float32 (float64 for models of float64)
  torch::Tensor branch_BTD;  ///< in the dtype of the matmuls; undefined: nothing to add
};

/// Adds the branch to the stream, then normalises the sum to the dtype of the matmuls. An empty norm only converts.
NormedSum normed(const RmsNorm& norm, const Residual& residual, torch::ScalarType type);

class Block {
 public:
  Block(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index, std::shared_ptr<RotaryCache> rotary);
  virtual ~Block() = default;

  /// @param type  dtype of the matmuls.
  virtual Residual forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const;

  void visit(WeightVisitor& v) const;

  RmsNorm attention_norm, mlp_norm;  ///< empty if the config has norm none
  Attention attention;
  std::shared_ptr<FeedForward> mlp;

 private:
  size_t index_;
};

}  // namespace prism
