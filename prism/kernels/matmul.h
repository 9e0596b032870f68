// Products of two matrices: by prism's own kernels (kernels/gemm) where the processor has instructions for them, else
// by LibTorch's.
#pragma once

#include <torch/types.h>

namespace prism {

/// a b, with sums in float32 (float64 for float64) that are rounded once to `type`; LibTorch's products are rounded to
/// the dtype of a and b before that.
///
/// @param a     [M, K], @param b [K, N]: of one dtype; either may be a transposed view, x.t().
/// @param type  of the result: that of a and b, or float32.
/// @return      [M, N], dense.
torch::Tensor matmul(const torch::Tensor& a, const torch::Tensor& b, torch::ScalarType type);

/// out = a b, or out += a b where `accumulate` says so, which needs a float32 or float64 `out`.
///
/// @param out  [M, N], rows dense; as matmul() otherwise.
void matmul_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b, bool accumulate = false);

/// out = f(a b + bias), f the identity or max(0, .), rounded once where prism's own kernels compute it.
///
/// @param out   [M, N] in the dtype of a and b, rows dense.
/// @param bias  [N] dense, float32 (float64 for float64); undefined: none.
void matmul_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias,
                 bool relu);

}  // namespace prism
