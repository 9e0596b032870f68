#include "prism/layers/embedding.h"

#include <ATen/Functions.h>

#include <cmath>

#include "prism/core/error.h"

namespace prism {

torch::Tensor Embedding::operator()(const torch::Tensor& ids) const {
  return weight.rows(ids);
}

torch::Tensor sinusoidal_positions(int64_t positions, int64_t width) {
  PRISM_ASSERT(width % 2 == 0, "sinusoidal_positions", "an odd width of {}", width);
  const auto exponent = at::arange(0, width, 2, torch::kDouble) / static_cast<double>(width);
  const auto angle = at::arange(positions, torch::kDouble).unsqueeze(1) * at::exp(-std::log(10000.0) * exponent);
  return at::stack({angle.sin(), angle.cos()}, 2).flatten(1);
}

}  // namespace prism
