// The feed-forward part of a block: one class a kind, chosen by name.
//
//   const auto mlp = make_feed_forward(768, {.kind = "swiglu", .width = 2048});
//   auto y = mlp->forward(x);
//
// A new kind is a source of its own beside swiglu_mlp.cpp, and a row in feed_forward.cpp.
#pragma once

#include <memory>
#include <vector>

#include "prism/layers/ffn_config.h"
#include "prism/layers/weight_list.h"

namespace prism {

class FeedForward {
 public:
  virtual ~FeedForward() = default;

  /// x [..., d_model] -> [..., d_model], x's dtype.
  /// @param hidden  if given, receives the features that each product after the first reads.
  virtual torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr) const = 0;
  virtual void visit(WeightVisitor& v) const = 0;
};

/// @param config  as check() wants it.
std::shared_ptr<FeedForward> make_feed_forward(int64_t d_model, const FfnConfig& config);

}  // namespace prism
