// The token embedding, whose matrix may also be the language-model head.
#pragma once

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>
#include <torch/types.h>

#include "prism/layers/cast_weight.h"

namespace prism {

class EmbeddingImpl : public torch::nn::Module {
 public:
  EmbeddingImpl(int64_t vocab_size, int64_t width);

  /// ids [...] int64 -> [..., width] in the weight's dtype.
  torch::Tensor forward(const torch::Tensor& ids);
  /// The matrix in the dtype of a product, for a tied head.
  const torch::Tensor& cast(torch::ScalarType type) { return cast_.get(weight, type); }

  torch::Tensor weight;  ///< [vocab_size, width]

 private:
  CastWeight cast_;
};
TORCH_MODULE(Embedding);

}  // namespace prism
