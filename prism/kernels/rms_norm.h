// Root-mean-square normalisation with a learned gain, in one pass over memory each way.
#pragma once

#include <torch/types.h>

namespace prism {

/// y = x / sqrt(mean(x^2) + eps) * weight, over the last axis.
///
/// @param x       [..., d] float32 or float64 (the residual stream).
/// @param weight  [d], x's dtype.
/// @param out     dtype of y: x's, or bfloat16 for matmuls that follow. Statistics are kept in x's dtype.
/// @throws InputError for other dtypes or widths. Gradients flow to x and weight.
/// Source: arXiv 1910.07467.
torch::Tensor rms_norm(const torch::Tensor& x, const torch::Tensor& weight, double eps, torch::ScalarType out);

/// The same from elementary tensor operations; the truth for tests.
torch::Tensor rms_norm_plain(const torch::Tensor& x, const torch::Tensor& weight, double eps, torch::ScalarType out);

}  // namespace prism
