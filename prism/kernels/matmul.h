// Matrix products, by prism's kernels (kernels/gemm; kernels/rows for few rows) if the processor supports them, else by
// LibTorch's.
#pragma once

#include <torch/types.h>

namespace prism {

/// a b, with sums in float32 (float64 for float64) that are rounded once to `type`. Where LibTorch computes the
/// product, it is first rounded to the dtype of a and b.
///
/// @param a     [M, K].
/// @param b     [K, N], a's dtype. Either may be a transposed view, x.t().
/// @param type  dtype of the result: that of a and b, or float32.
/// @return      [M, N], dense.
torch::Tensor matmul(const torch::Tensor& a, const torch::Tensor& b, torch::ScalarType type);

/// out = a b, or out += a b if `accumulate` is set, which requires a float32 or float64 `out`. Otherwise as matmul().
///
/// @param out  [M, N], rows dense.
void matmul_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b, bool accumulate = false);

/// out = f(a b + bias), where f is the identity or max(0, .). Rounded once if prism's kernels compute it.
///
/// @param out   [M, N] in the dtype of a and b, rows dense.
/// @param bias  [N] dense, float32 (float64 for float64); undefined: none.
void matmul_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b, const torch::Tensor& bias,
                 bool relu);

/// out[i] = a[i] b[i] for each i, as matmul_into(). `out` must not overlap a or b.
///
/// @param out  [B, M, N] in the dtype of a and b, rows dense.  @param a  [B, M, K].  @param b  [B, K, N].
void bmm_into(const torch::Tensor& out, const torch::Tensor& a, const torch::Tensor& b);

}  // namespace prism
