#include "prism/layers/norm.h"

#include "prism/kernels/rms_norm.h"

namespace prism {

RmsNormImpl::RmsNormImpl(int64_t width, double eps) : eps_(eps) {
  weight = register_parameter("weight", torch::ones({width}));
}

torch::Tensor RmsNormImpl::forward(const torch::Tensor& x, torch::ScalarType out) {
  return rms_norm(x, weight, eps_, out);
}

}  // namespace prism
