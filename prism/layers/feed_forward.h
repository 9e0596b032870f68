// The feed-forward part of a block: one class for each kind, chosen by name.
//
//   const auto mlp = make_feed_forward(768, {.kind = "swiglu", .width = 2048});
//   auto y = mlp->forward(x);
//
// To add a kind, write a source file beside glu_mlp.cpp and add a row in feed_forward.cpp.
#pragma once

#include <memory>
#include <vector>

#include "prism/layers/ffn_config.h"
#include "prism/layers/weight_list.h"

namespace prism {

/// The first and the last projection of a feed-forward part. To share them, assign another part's handles.
struct WeightPair {
  Weight &up, &down;
};

class FeedForward {
 public:
  virtual ~FeedForward() = default;

  /// x [..., d_model] -> [..., d_model], x's dtype.
  /// @param hidden    if not null, receives the hidden features of each layer: the inputs of all products after the
  ///                  first.
  /// @param decoding  as in ProductOptions.
  virtual torch::Tensor forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden = nullptr,
                                int64_t decoding = 0) const = 0;
  /// The factor of W_up x in a gated part, x [..., d_model] -> [..., width]; undefined for parts without gates.
  virtual torch::Tensor gate(const torch::Tensor& x) const;
  virtual void visit(WeightVisitor& v) const = 0;
  /// The handles of W_up and W_down, for a part that was made to share them and has one hidden layer.
  virtual WeightPair pair() = 0;
};

/// @param config  must pass check().
/// @param shares  whether W_up and W_down are to be shared with other layers.
std::shared_ptr<FeedForward> make_feed_forward(int64_t d_model, const FfnConfig& config, bool shares = false);

}  // namespace prism
