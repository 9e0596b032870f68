#include "prism/layers/embedding.h"

#include <ATen/Functions.h>

namespace prism {

EmbeddingImpl::EmbeddingImpl(int64_t vocab_size, int64_t width) {
  weight = register_parameter("weight", torch::empty({vocab_size, width}));
}

torch::Tensor EmbeddingImpl::forward(const torch::Tensor& ids) {
  return at::embedding(weight, ids);
}

}  // namespace prism
