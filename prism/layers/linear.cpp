#include "prism/layers/linear.h"

#include "prism/kernels/linear.h"

namespace prism {

LinearImpl::LinearImpl(int64_t in, int64_t out, bool has_bias) {
  weight = register_parameter("weight", torch::empty({out, in}));
  if (has_bias) bias = register_parameter("bias", torch::empty({out}));
}

torch::Tensor LinearImpl::forward(const torch::Tensor& x) {
  return linear(x, weight, cast(x.scalar_type()), bias);
}

torch::Tensor LinearImpl::forward_relu(const torch::Tensor& x) {
  return linear(x, weight, cast(x.scalar_type()), bias, /*relu=*/true);
}

}  // namespace prism
