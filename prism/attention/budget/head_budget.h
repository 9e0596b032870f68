// The head budget of one layer: decides for each text, or each prompt, how many heads count, and which.
#pragma once

#include "prism/attention/forward_context.h"
#include "prism/attention/layer_config.h"
#include "prism/layers/linear.h"

namespace prism {

// B batch, T positions, D d_model, H heads

/// The mean h of what queries, keys and values read, over the tokens of each text or prompt, gives
///
///   s = sigmoid(f(h)),  f: D -> D -> 1 with ReLU
///   z = g(h) + e sigma(t / T),  g: D -> H,  e ~ N(0, 1)
///   p = softmax(z / tau(t / T)),  w = s H p,  k = max(1, floor(s H))
///
/// and the k heads with the largest p are kept, the lower head first where p is equal. In training all heads count,
/// multiplied by w (with `train_topk`: the kept ones), and the loss of equations 20 to 25 is added, its mean over texts
/// and layers. Otherwise there is no noise, and only kept heads are computed, multiplied by w.
///
/// `fixed`: s is the given share, without f. `random`: s is the given share, p = 1 / H, and the k heads are drawn, in
/// training too.
///
/// With a cache, the first call reads the prompt and decides; what it decided stays in the cache for the tokens after
/// the prompt. Computed in the weights' dtype; without gradients, what follows the networks in float64.
/// Source: arXiv 2604.22583, equations 6 to 25.
class HeadBudget {
 public:
  /// An empty budget: all heads count as they are.
  HeadBudget() = default;
  /// @param index    of the layer.
  /// @param budgets  number of layers with a budget, over which losses are averaged.
  HeadBudget(int64_t d_model, const LayerConfig& layer, size_t index, int64_t budgets);

  explicit operator bool() const { return config_.is_on(); }

  /// @param x_BTD    what queries, keys and values read.
  /// @param tau      temperature if the context has no Budgets.
  /// @throws InputError for a selector in the context, or a prompt in chunks.
  HeadWeights operator()(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const;

  /// The networks compute once per text, so their products per token count as 0.
  void visit(WeightVisitor& v) const;

  Linear hidden, share;  ///< f: [D, D], [1, D], with biases; empty unless learned
  Linear scores;         ///< g: [H, D], with a bias; empty if random

 private:
  /// s and p of the tokens of this call, equations 6 to 10, with gradients. In training adds the loss.
  BudgetDecision read(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const;
  /// Decides from the tokens of this call.
  HeadWeights decide(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const;
  /// decide() outside training and without gradients (choose_heads.h).
  HeadWeights decide_without_gradients(const torch::Tensor& x_BTD, const ForwardContext& context, double tau) const;
  /// Random numbers for heads that are drawn or shuffled.
  torch::Tensor draw(const ForwardContext& context, int64_t batch) const;
  torch::Tensor summary(const torch::Tensor& x_BTD, const ForwardContext& context) const;
  /// The mean over texts and layers of equations 21 and 25.
  torch::Tensor loss(const torch::Tensor& s_B, const torch::Tensor& log_p_BH, const Budgets& budgets) const;

  BudgetConfig config_;
  int64_t heads_ = 0, budgets_ = 1;
  size_t index_ = 0;
};

}  // namespace prism
