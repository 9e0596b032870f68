// y = f(x W^T + b) with float32 master weights and a product in the input's dtype.
#pragma once

#include <torch/types.h>

namespace prism {

/// y = f(x W^T + b), where f is the identity or max(0, .). The product uses `cast`, a copy of the weight in x's dtype;
/// the gradients go to `weight` and `bias` in their own dtype. Keeps x for the backward pass, and y if relu is set.
///
/// @param x       [..., in].
/// @param weight  [out, in], the trained weight.
/// @param cast    the same values in x's dtype (the weight itself if the dtypes agree).
/// @param bias    [out], weight's dtype; undefined: none.
/// @return        [..., out], x's dtype.
torch::Tensor linear(const torch::Tensor& x, const torch::Tensor& weight, const torch::Tensor& cast,
                     const torch::Tensor& bias = {}, bool relu = false);

}  // namespace prism
