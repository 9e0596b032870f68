// One layer. Pre-norm: x + attention(norm(x)), then x + mlp(norm(x)); norm may be the identity. Post-norm:
// norm(x + attention(x)), then norm(x + mlp(x)).
#pragma once

#include <memory>

#include "prism/attention/attention.h"
#include "prism/layers/feed_forward.h"
#include "prism/layers/norm.h"
#include "prism/models/model_config.h"

namespace prism {

/// The residual stream and a branch that is not yet added to it. The next norm adds it and normalises in one pass.
struct Residual {
  torch::Tensor stream_BTD;     ///< float32 (float64 for models of float64)
  torch::Tensor branch_BTD;     ///< in the dtype of the matmuls; undefined: nothing to add
  torch::Tensor cast_BTD = {};  ///< the stream in the dtype of the matmuls, where a norm has computed it already
};

/// Adds the branch to the stream, then normalises the sum to the dtype of the matmuls. An empty norm only converts.
NormedSum normed(const Norm& norm, const Residual& residual, torch::ScalarType type);

class Block {
 public:
  /// @param index   of this layer.
  /// @param rotary  shared by all layers of a model.
  Block(const ModelConfig& model, size_t index, std::shared_ptr<RotaryCache> rotary);
  virtual ~Block() = default;

  /// @param type  dtype of the matmuls.
  virtual Residual forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const;

  /// Returns true if the norms come after the additions.
  bool is_post() const { return is_post_; }

  void visit(WeightVisitor& v) const;

  Norm attention_norm, mlp_norm;  ///< empty if the config has norm none
  Attention attention;
  std::shared_ptr<FeedForward> mlp;

 private:
  size_t index_;
  bool is_post_ = false;
};

}  // namespace prism
