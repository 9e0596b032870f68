// Chooses the heads of each text from the scores of its budget.
#pragma once

#include <torch/types.h>

#include <cstdint>

#include "prism/attention/budget/budgets.h"

namespace prism {

// B batch, H heads

/// What the networks of a layer's budget say of each text.
struct BudgetScores {
  int64_t batch = 0, heads = 0;
  torch::Tensor share_B1{};  ///< f(h), float32 or float64: s is its sigmoid; undefined: s is `share`
  double share = 1;
  torch::Tensor heads_BH{};  ///< g(h), in the same dtype; undefined: p = 1 / H
  torch::Tensor drawn_BH{};  ///< float64 random numbers for heads that are drawn or shuffled; undefined: none are
};

struct ChosenHeads {
  BudgetDecision decision;
  torch::Tensor weight_BH;  ///< w = s H p, of heads that are not kept, too
  bool keeps_all = true;    ///< every text keeps all heads
};

/// What a budget decides outside training, without gradients:
///
///   s = sigmoid(f),  p = softmax(g / tau),  w = s H p,  kept: the max(1, floor(s H)) heads with the largest p
///
/// of each text. `change` replaces parts of this. Heads that are drawn have p = 1 / H, and those with the largest
/// random numbers are kept. Computed in float64 and rounded to the scores' dtype, in one loop on the CPU, because some
/// twenty operations of LibTorch take longer on so few numbers. Source: arXiv 2604.22583, equations 7 to 16.
/// @param device  where the results are wanted.
ChosenHeads choose_heads(const BudgetScores& scores, double tau, const BudgetChange& change,
                         const torch::Device& device);

/// The kept heads: the floor(s H) largest of each row, at least one; the lower head where values are equal. An s of k /
/// H keeps k heads although it is rounded. Stays on the device.
/// @param s_B  shares, 0..1. @return  bool [B, H].
torch::Tensor largest_heads(const torch::Tensor& s_B, const torch::Tensor& value_BH);

}  // namespace prism
