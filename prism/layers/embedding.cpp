#include "prism/layers/embedding.h"

#include <ATen/Functions.h>

namespace prism {

torch::Tensor Embedding::operator()(const torch::Tensor& ids) const {
  return at::embedding(weight.tensor(), ids);
}

}  // namespace prism
