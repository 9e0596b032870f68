// The language-model head and its cross-entropy, computed in chunks of rows so that the full logits never exist at
// once.
#pragma once

#include <torch/types.h>

#include <functional>
#include <vector>

namespace prism {

/// Mean cross-entropy of the language-model head.
///
///   loss_n = lse_n - z_n,label + lse_weight lse_n^2,  lse_n = log sum_v exp(z_nv),  z = hidden W^T
///
/// The last term, the z-loss, keeps logits from drifting; lse_weight 0 disables it. Source: arXiv 2204.02311,
/// section 5.
///
/// The product is computed in `hidden`'s dtype, everything after it in float32 (float64 for float64). The gradients are
/// computed chunk by chunk in the forward pass and scaled in the backward pass, so only one chunk of logits is ever in
/// memory. Differentiable in hidden and weight.
///
/// @param hidden  [N, d] bfloat16, float32 or float64.
/// @param weight  [V, d] the trained weight.
/// @param cast    [V, d] the same values in hidden's dtype.
/// @param labels  [N] int64 in [0, V), or -1 for rows to ignore.
/// @return        scalar float32: the mean over all rows that are not ignored.
/// @throws InputError for inconsistent shapes, or labels outside the vocabulary.
torch::Tensor head_cross_entropy(const torch::Tensor& hidden, const torch::Tensor& weight, const torch::Tensor& cast,
                                 const torch::Tensor& labels, double lse_weight = 0);

/// How the head predicts each label.
struct TokenScores {
  torch::Tensor losses_N;  ///< float32 (float64 for float64), as above with lse_weight 0; 0 for ignored rows
  torch::Tensor is_top_N;  ///< bool, whether no logit is larger than the label's; false for ignored rows
};

/// Without gradients.
/// @param shape    of W, [V, d].
/// @param product  maps some rows [n, d] of `hidden` to their logits [n, V].
/// @param with_top  false: is_top_N is undefined.
TokenScores head_token_scores(const torch::Tensor& hidden, const std::vector<int64_t>& shape,
                              const std::function<torch::Tensor(const torch::Tensor&)>& product,
                              const torch::Tensor& labels, bool with_top);

/// head_cross_entropy() from the full logits; the reference for tests.
torch::Tensor head_cross_entropy_plain(const torch::Tensor& hidden, const torch::Tensor& weight,
                                       const torch::Tensor& labels, double lse_weight = 0);

}  // namespace prism
