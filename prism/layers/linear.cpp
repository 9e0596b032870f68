#include "prism/layers/linear.h"

#include "prism/kernels/linear.h"

namespace prism {

LinearImpl::LinearImpl(int64_t in, int64_t out) {
  weight = register_parameter("weight", torch::empty({out, in}));
}

torch::Tensor LinearImpl::forward(const torch::Tensor& x) {
  return linear(x, weight, cast(x.scalar_type()));
}

}  // namespace prism
