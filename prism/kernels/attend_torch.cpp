// LibTorch's flash attention for the CPU, with every mask that attend() knows expressed as an additive one.
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>

#include <limits>
#include <optional>

#include "prism/kernels/attend.h"

namespace prism {
namespace {

/// SDPA's own causal mask is top-left aligned: right only where queries and keys are equally many. One query sees all.
bool needs_no_mask(const AttentionInput& input, bool* causal) {
  const int64_t queries = input.q_BTHD.size(1), keys = input.kv.k_BGSD.size(2);
  *causal = input.causality == Causality::causal && queries > 1;
  return !input.q_lengths_B.defined() && !input.kv_lengths_B.defined() && !input.documents_BS.defined() &&
         !input.block_mask.defined() && (!*causal || queries == keys);
}

/// A key/value head once per query head, where SDPA would otherwise give wrong gradients: its backward pass writes one
/// gradient row per query head.
torch::Tensor repeat_heads(const torch::Tensor& kv_BGSD, int64_t heads) {
  return kv_BGSD.repeat_interleave(heads / kv_BGSD.size(1), 1);
}

}  // namespace

bool torch_backend_serves(const AttentionInput& input) {
  return input.q_BTHD.device().is_cpu() && input.kv.v_BGSE.size(3) == input.q_BTHD.size(3) &&
         input.q_BTHD.numel() > 0 && input.kv.k_BGSD.numel() > 0;
}

AttentionOutput attend_torch(const AttentionInput& given) {
  AttentionInput input = given;
  input.kv = gather_pages(given);
  const auto& q = input.q_BTHD;
  auto k = input.kv.k_BGSD, v = input.kv.v_BGSE;
  if (k.size(1) != q.size(2) && torch::GradMode::is_enabled() &&
      (q.requires_grad() || k.requires_grad() || v.requires_grad())) {
    k = repeat_heads(k, q.size(2));
    v = repeat_heads(v, q.size(2));
  }
  bool causal = false;
  std::optional<torch::Tensor> mask;
  torch::Tensor empty_BHT1;
  if (!needs_no_mask(input, &causal)) {
    causal = false;
    auto visible = visible_keys(input);
    // A row without keys would be 0/0: let it see everything, and clear its output.
    empty_BHT1 = visible.any(-1, /*keepdim=*/true).logical_not();
    visible = visible | empty_BHT1;
    mask = torch::zeros(visible.sizes(), q.options().requires_grad(false))
               .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
    mask = mask->expand({q.size(0), visible.size(1), q.size(1), k.size(2)});
  }
  auto [out_BHTE, lse_BHT] = at::_scaled_dot_product_flash_attention_for_cpu(q.transpose(1, 2), k, v, /*dropout_p=*/0.0,
                                                                             causal, mask, input.scale);
  if (empty_BHT1.defined()) {
    out_BHTE = out_BHTE.masked_fill(empty_BHT1, 0.0);
    lse_BHT = lse_BHT.masked_fill(empty_BHT1.squeeze(-1), -std::numeric_limits<double>::infinity());
  }
  auto out_BTHE = out_BHTE.transpose(1, 2);
  if (input.kept_heads_BH.defined()) {
    out_BTHE = out_BTHE * input.kept_heads_BH.view({q.size(0), 1, q.size(2), 1});
    lse_BHT =
        lse_BHT.masked_fill(input.kept_heads_BH.logical_not().unsqueeze(-1), -std::numeric_limits<double>::infinity());
  }
  return {out_BTHE, lse_BHT};
}

}  // namespace prism
