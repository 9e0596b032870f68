// The torch backend: LibTorch's fused attention. Every mask that attend() supports becomes an additive mask.
#include <ATen/ops/_scaled_dot_product_efficient_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention.h>
#include <ATen/ops/_scaled_dot_product_flash_attention_for_cpu.h>
#include <ATen/ops/empty.h>

#include <limits>
#include <optional>
#include <tuple>

#include "prism/kernels/attention/attend.h"

namespace prism {
namespace {

/// Returns true if SDPA needs no explicit mask. SDPA's causal mask is aligned top-left, so it is correct only for equal
/// numbers of queries and keys. A single query sees all keys.
bool needs_no_mask(const AttentionInput& input, bool* causal) {
  const int64_t queries = input.q_BTHD.size(1), keys = input.kv.k_BGSD.size(2);
  *causal = input.causality == Causality::causal && queries > 1;
  return !input.q_lengths_B.defined() && !input.kv_lengths_B.defined() && !input.documents_BS.defined() &&
         !input.block_mask.defined() && (!*causal || queries == keys) && (input.window == 0 || input.window >= keys);
}

/// Repeats each key/value head for its query heads. Without this SDPA's gradients would be wrong, because its backward
/// pass writes one gradient row per query head.
torch::Tensor repeat_heads(const torch::Tensor& kv_BGSD, int64_t heads) {
  return kv_BGSD.repeat_interleave(heads / kv_BGSD.size(1), 1);
}

struct Fused {
  torch::Tensor out_BHTE, lse_BHT;
};

/// On a GPU: flash attention for 16-bit types without a mask, else memory-efficient attention.
Fused attend_on_cuda(const torch::Tensor& q, const torch::Tensor& k, const torch::Tensor& v,
                     const std::optional<torch::Tensor>& mask, bool causal, std::optional<double> scale) {
  constexpr int64_t kWidest = 256, kAligned = 8;
  if (!mask && q.scalar_type() != torch::kFloat && q.size(3) <= kWidest) {
    const auto results = at::_scaled_dot_product_flash_attention(q, k, v, /*dropout_p=*/0.0, causal,
                                                                 /*return_debug_mask=*/false, scale);
    return {std::get<0>(results), std::get<1>(results)};
  }
  std::optional<torch::Tensor> bias;
  if (mask) {  // its rows must be aligned to 16 bytes
    const int64_t keys = k.size(2), padded = (keys + kAligned - 1) / kAligned * kAligned;
    auto whole = at::empty({q.size(0), q.size(1), q.size(2), padded}, mask->options());
    bias = whole.narrow(3, 0, keys).copy_(*mask);
  }
  const auto results = at::_scaled_dot_product_efficient_attention(q, k, v, bias, /*compute_log_sumexp=*/true,
                                                                   /*dropout_p=*/0.0, causal, scale);
  return {std::get<0>(results), std::get<1>(results).narrow(2, 0, q.size(2))};
}

bool cuda_serves(const torch::Tensor& q) {
  const bool is_half = q.scalar_type() == torch::kBFloat16 || q.scalar_type() == torch::kHalf;
  return q.size(3) % (is_half ? 8 : 4) == 0 && (is_half || q.scalar_type() == torch::kFloat);
}

}  // namespace

bool torch_backend_serves(const AttentionInput& input) {
  const auto& q = input.q_BTHD;
  return (q.device().is_cpu() || (q.device().is_cuda() && cuda_serves(q))) && input.kv.v_BGSE.size(3) == q.size(3) &&
         q.numel() > 0 && input.kv.k_BGSD.numel() > 0;
}

AttentionOutput attend_torch(const AttentionInput& given) {
  AttentionInput input = given;
  input.kv = gather_pages(given);
  const auto& q = input.q_BTHD;
  auto k = input.kv.k_BGSD, v = input.kv.v_BGSE;
  const bool wants_gradients =
      torch::GradMode::is_enabled() && (q.requires_grad() || k.requires_grad() || v.requires_grad());
  if (k.size(1) != q.size(2) && (wants_gradients || q.is_cuda())) {
    k = repeat_heads(k, q.size(2));
    v = repeat_heads(v, q.size(2));
  }
  bool causal = false;
  std::optional<torch::Tensor> mask;
  torch::Tensor empty_BHT1;
  if (!needs_no_mask(input, &causal)) {
    causal = false;
    auto visible = visible_keys(input);
    // A row without keys would be 0/0, so it sees all keys and its output is cleared afterwards.
    empty_BHT1 = visible.any(-1, /*keepdim=*/true).logical_not();
    visible = visible | empty_BHT1;
    mask = torch::zeros(visible.sizes(), q.options().requires_grad(false))
               .masked_fill_(visible.logical_not(), -std::numeric_limits<double>::infinity());
    mask = mask->expand({q.size(0), visible.size(1), q.size(1), k.size(2)});
  }
  const auto q_BHTD = q.transpose(1, 2);
  Fused fused;
  if (q.is_cuda())
    fused = attend_on_cuda(q_BHTD, k, v, mask, causal, input.scale);
  else
    std::tie(fused.out_BHTE, fused.lse_BHT) =
        at::_scaled_dot_product_flash_attention_for_cpu(q_BHTD, k, v, /*dropout_p=*/0.0, causal, mask, input.scale);
  auto& [out_BHTE, lse_BHT] = fused;
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
  if (input.head_weights_BH.defined())
    out_BTHE = out_BTHE * input.head_weights_BH.to(q.scalar_type()).view({q.size(0), 1, q.size(2), 1});
  return {out_BTHE, lse_BHT};
}

}  // namespace prism
