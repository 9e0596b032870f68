#include "prism/layers/norm.h"

namespace prism {

RmsNormImpl::RmsNormImpl(int64_t width, double eps) : eps_(eps) {
  weight = register_parameter("weight", torch::ones({width}));
}

NormedSum RmsNormImpl::forward(const torch::Tensor& x, const torch::Tensor& branch, torch::ScalarType out) {
  return add_rms_norm(x, branch, weight, eps_, out);
}

}  // namespace prism
