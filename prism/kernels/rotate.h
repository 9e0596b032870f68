// Rotary position embedding of fused queries and keys, in place in the forward and backward pass.
#pragma once

#include <torch/types.h>

namespace prism {

/// Rotates the first `rotated_heads` heads of every position; the others (the values of fused QKV) stay unchanged.
///
///   (a_j, b_j) -> (a_j cos_j - b_j sin_j, b_j cos_j + a_j sin_j),  a_j = x[j], b_j = x[j + D/2],  j < D/2
///
/// The two features of a pair are half a head apart, as in Llama checkpoints. The arithmetic is float32 (float64 for
/// float64), rounded once.
///
/// @param x_BTF      [B, T, F = N D] contiguous, bfloat16, float32 or float64. Overwritten if a row kernel supports it
///                   and no copy is needed. Must not be a view of another tensor: autograd would then copy in both
///                   passes.
/// @param cos, sin   [T, D/2] or [B, T, D/2] float32, contiguous; their width determines D.
/// @return           the rotated x, in x's memory where possible. Differentiable in x.
/// @throws InputError for tables whose shape does not fit x.
/// Source: arXiv 2104.09864. Differs: pairs are half a head apart instead of adjacent; equivalent up to a permutation
/// of rows.
torch::Tensor rotate_heads(const torch::Tensor& x_BTF, const torch::Tensor& cos, const torch::Tensor& sin,
                           int64_t rotated_heads);

/// The same with elementary tensor operations; the reference for tests.
torch::Tensor rotate_heads_plain(const torch::Tensor& x_BTF, const torch::Tensor& cos, const torch::Tensor& sin,
                                 int64_t rotated_heads);

}  // namespace prism
