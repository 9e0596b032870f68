// The reference backend: stores all scores in memory. Slow; other backends are tested against it.
#include <ATen/Functions.h>

#include <cmath>
#include <limits>

#include "prism/kernels/attention/attend.h"

namespace prism {

AttentionOutput attend_reference(const AttentionInput& given, torch::Tensor* probabilities_BHTS) {
  AttentionInput input = given;
  input.kv = gather_pages(given);
  const auto& q = input.q_BTHD;
  const int64_t batch = q.size(0), queries = q.size(1), heads = q.size(2), head_dim = q.size(3);
  const int64_t groups = input.kv.k_BGSD.size(1), keys = input.kv.k_BGSD.size(2), value_dim = input.kv.v_BGSE.size(3);
  const double scale = input.scale.value_or(1.0 / std::sqrt(static_cast<double>(head_dim)));
  const auto type = q.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;

  // The query heads of one key/value head get their own axis R, over which keys and values broadcast.
  const auto q_BGRTD = q.to(type).transpose(1, 2).reshape({batch, groups, heads / groups, queries, head_dim});
  const auto k_BG1SD = input.kv.k_BGSD.to(type).unsqueeze(2), v_BG1SE = input.kv.v_BGSE.to(type).unsqueeze(2);
  auto scores_BHTS = at::matmul(q_BGRTD, k_BG1SD.transpose(-1, -2)).mul(scale).reshape({batch, heads, queries, keys});
  const auto visible = visible_keys(input);
  if (visible.defined())
    scores_BHTS = scores_BHTS.masked_fill(visible.logical_not(), -std::numeric_limits<double>::infinity());

  auto lse_BHT = at::logsumexp(scores_BHTS.detach(), -1);
  // A row without keys has only -inf scores, whose softmax is NaN; its output is zero instead.
  const auto empty_BHT1 = lse_BHT.isneginf().unsqueeze(-1);
  const auto weights_BHTS = at::softmax(scores_BHTS.masked_fill(empty_BHT1, 0.0), -1).masked_fill(empty_BHT1, 0.0);
  auto out_BHTE = at::matmul(weights_BHTS.view({batch, groups, heads / groups, queries, keys}), v_BG1SE)
                      .view({batch, heads, queries, value_dim});
  if (input.kept_heads_BH.defined()) {
    const auto kept_BH11 = input.kept_heads_BH.view({batch, heads, 1, 1});
    out_BHTE = out_BHTE * kept_BH11;
    lse_BHT = lse_BHT.masked_fill(kept_BH11.squeeze(-1).logical_not(), -std::numeric_limits<double>::infinity());
  }
  if (input.head_weights_BH.defined()) out_BHTE = out_BHTE * input.head_weights_BH.to(type).view({batch, heads, 1, 1});
  if (probabilities_BHTS != nullptr) *probabilities_BHTS = weights_BHTS;
  return {out_BHTE.transpose(1, 2).to(q.scalar_type()), lse_BHT};
}

}  // namespace prism
