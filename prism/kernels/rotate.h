// Rotary position embedding applied to fused queries and keys, in place on the way in and out.
#pragma once

#include <torch/types.h>

namespace prism {

/// Rotates the first `rotated_heads` heads of every position; the others (the values of fused QKV) pass unchanged.
///
///   (a_j, b_j) -> (a_j cos_j - b_j sin_j, b_j cos_j + a_j sin_j),  a_j = x[j], b_j = x[j + D/2],  j < D/2
///
/// Half-split pairs, as Llama checkpoints have them. The arithmetic is float32 (float64 for float64), rounded once.
///
/// @param x_BTF      [B, T, F = N D] contiguous, bfloat16, float32 or float64; overwritten where a row kernel serves it
///                   and no copy is needed. Not
/// a
///                   view of another tensor, for which autograd would copy both ways.
/// @param cos, sin   [T, D/2] or [B, T, D/2] float32, contiguous; their width says what D is.
/// @return           x, rotated, where it could be in its memory; gradients flow to x.
/// @throws InputError for tables that do not fit.
/// Source: arXiv 2104.09864. Differs: pairs are half a head apart, not neighbours; the same up to a permutation of
/// rows.
torch::Tensor rotate_heads(const torch::Tensor& x_BTF, const torch::Tensor& cos, const torch::Tensor& sin,
                           int64_t rotated_heads);

/// The same from elementary tensor operations; the truth for tests.
torch::Tensor rotate_heads_plain(const torch::Tensor& x_BTF, const torch::Tensor& cos, const torch::Tensor& sin,
                                 int64_t rotated_heads);

}  // namespace prism
