// Fused residual addition and RMSNorm with a learned gain.
#pragma once

#include <torch/types.h>

namespace prism {

struct NormedSum {
  torch::Tensor sum, normed;
};

/// sum = x + branch,  normed = sum / sqrt(mean(sum^2) + eps) * weight, over the last axis. Forward and backward make
/// one pass over memory each.
///
/// @param x       [..., d] float32 or float64 (the residual stream).
/// @param branch  x's shape, dtype `out`; undefined: the sum is x.
/// @param weight  [d], x's dtype.
/// @param out     dtype of `normed`: x's, or bfloat16 for the matmuls that follow. Sums and statistics stay in x's
///                dtype.
/// @throws InputError for other dtypes or shapes. Differentiable in x, branch and weight.
/// Source: arXiv 1910.07467.
NormedSum add_rms_norm(const torch::Tensor& x, const torch::Tensor& branch, const torch::Tensor& weight, double eps,
                       torch::ScalarType out);

/// The same with elementary tensor operations; the reference for tests.
NormedSum add_rms_norm_plain(const torch::Tensor& x, const torch::Tensor& branch, const torch::Tensor& weight,
                             double eps, torch::ScalarType out);

}  // namespace prism
