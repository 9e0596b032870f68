// The language-model head and its cross-entropy in chunks of rows, so that all logits never exist at once.
#pragma once

#include <torch/types.h>

namespace prism {

///   loss_n = lse_n - z_n,label + lse_weight lse_n^2,  lse_n = log sum_v exp(z_nv),  z = hidden W^T
///
/// The last term, the z-loss, keeps logits from drifting; 0 leaves it out. Source: arXiv 2204.02311, section 5.
///
/// The product is computed in `hidden`'s dtype, everything after it in float32 (float64 for float64). The gradients of
/// mean-reduced losses are computed on the way forward, chunk by chunk, and scaled on the way back: only the chunk's
/// logits are ever in memory. Gradients flow to hidden and weight.
///
/// @param hidden  [N, d] bfloat16, float32 or float64.
/// @param weight  [V, d] what is trained.  @param cast  the same in hidden's dtype.
/// @param labels  [N] int64 in [0, V), or -1 for rows that do not count.
/// @return        scalar float32: the mean over the rows that count.
/// @throws InputError for shapes that contradict each other, or labels outside the vocabulary.
torch::Tensor head_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight, const torch::Tensor& cast,
                                 const torch::Tensor& labels, double lse_weight = 0);

/// The same losses row by row with lse_weight 0, without gradients: [N] float32, 0 for rows that do not count.
torch::Tensor head_token_losses(const torch::Tensor& hidden, const torch::Tensor& cast, const torch::Tensor& labels);

/// The mean loss from whole logits; the truth for tests.
torch::Tensor head_cross_entropy_plain(const torch::Tensor& hidden, const torch::Tensor& weight,
                                       const torch::Tensor& labels, double lse_weight = 0);

}  // namespace prism
