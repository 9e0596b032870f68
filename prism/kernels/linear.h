// y = x W^T with a float32 master weight and a product in the input's dtype.
#pragma once

#include <torch/types.h>

namespace prism {

/// y = x W^T, computed with `cast`, a copy of the weight in x's dtype; the gradient goes to `weight` in its own dtype.
///
/// @param x       [..., in].
/// @param weight  [out, in], what is trained.
/// @param cast    the same values in x's dtype (the weight itself where the dtypes agree).
/// @return        [..., out], x's dtype.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& cast);

}  // namespace prism
