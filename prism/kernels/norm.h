// Fused residual addition and norm (RMSNorm or LayerNorm) with learned weights.
#pragma once

#include <torch/types.h>

namespace prism {

enum class NormKind {
  rms,   ///< y = s / sqrt(mean(s^2) + eps) * weight + bias. Source: arXiv 1910.07467
  layer  ///< y = (s - mean(s)) / sqrt(mean((s - mean(s))^2) + eps) * weight + bias. Source: arXiv 1607.06450
};

/// The weights and settings of a norm over the last axis, of width d.
struct NormSettings {
  NormKind kind = NormKind::rms;
  torch::Tensor weight;     ///< [d]
  torch::Tensor bias = {};  ///< [d]; undefined: 0
  double eps = 1e-5;
  /// false: the residual stream goes on as the sum (pre-norm); true: as the norm (post-norm, arXiv 1706.03762).
  bool is_post = false;
};

struct NormedSum {
  torch::Tensor stream;  ///< the residual stream after the addition, in x's dtype: s, or y if is_post
  torch::Tensor normed;  ///< y
};

/// s = x + branch,  y = norm(s). Forward and backward make one pass over memory each.
///
/// @param x       [..., d] float32 or float64 (the residual stream).
/// @param branch  x's shape, dtype `out`; undefined: s is x.
/// @param norm    weights in x's dtype.
/// @param out     dtype of `normed`: x's, or bfloat16 for the matmuls that follow. Sums and statistics stay in x's
///                dtype.
/// @throws InputError for other dtypes or shapes. Differentiable in x, branch, weight and bias.
NormedSum add_norm(const torch::Tensor& x, const torch::Tensor& branch, const NormSettings& norm,
                   torch::ScalarType out);

/// The same with elementary tensor operations; the reference for tests.
NormedSum add_norm_plain(const torch::Tensor& x, const torch::Tensor& branch, const NormSettings& norm,
                         torch::ScalarType out);

}  // namespace prism
