// Linear projection with float32 weights and products in the dtype of the input.
//
//   Linear qkv({.in = 768, .out = {{{"q_proj"}, 768, 12}, {{"k_proj"}, 768, 12}, {{"v_proj"}, 768, 12}}});
//   auto y = qkv(x);      // x bfloat16: the product runs on a bfloat16 copy, the gradient goes to the float32 weight
#pragma once

#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

struct LinearOptions {
  int64_t in = 0;
  std::vector<WeightRows> out = {};  ///< the output features in order, as named groups of rows
  bool bias = false;
  bool into_stream = false, feed_forward = false;  ///< as in WeightTraits
  int64_t products = 1;        ///< per token; 0: the projection is used once per sequence, or in training only
  bool training_only = false;  ///< as in WeightTraits
};

/// x W^T + b: x [..., in] -> [..., out], x's dtype.
class Linear {
 public:
  /// An empty projection without a weight.
  Linear() = default;
  explicit Linear(LinearOptions options);
  /// A projection whose rows form one unnamed group.
  Linear(int64_t in, int64_t out);

  explicit operator bool() const { return static_cast<bool>(weight); }

  /// @param decoding  as in ProductOptions.
  torch::Tensor operator()(const torch::Tensor& x, int64_t decoding = 0) const {
    return weight.product(x, {.bias = bias.tensor(), .decoding = decoding});
  }
  /// max(0, x W^T + b).
  torch::Tensor relu(const torch::Tensor& x, int64_t decoding = 0) const {
    return weight.product(x, {.bias = bias.tensor(), .relu = true, .decoding = decoding});
  }

  void visit(WeightVisitor& v) const;

  Weight weight;  ///< [out, in]
  Weight bias;    ///< [out]; empty unless options.bias

 private:
  LinearOptions options_;
};

}  // namespace prism
