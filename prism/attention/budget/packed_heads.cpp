#include "prism/attention/budget/packed_heads.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <functional>

#include "prism/core/numbers/block_type.h"
#include "prism/kernels/matmul.h"

namespace prism {
namespace {

/// Calls `work(i)` for 0 <= i < count: in parallel, or, if that would leave threads idle, one after the other, so that
/// each product uses all threads.
void for_each(int64_t count, const std::function<void(int64_t)>& work) {
  const int64_t threads = at::get_num_threads();
  if (count < 2 * threads || threads == 1) {
    for (int64_t i = 0; i < count; ++i) work(i);
    return;
  }
  at::parallel_for(0, count, 1, [&](int64_t first, int64_t last) {
    const torch::NoGradGuard no_gradients;  // the mode belongs to the thread
    for (int64_t i = first; i < last; ++i) work(i);
  });
}

/// Returns true if prism's kernels multiply with packed weights of this dtype.
bool packs(const torch::Tensor& weight) {
  return weight.is_cpu() && weight.scalar_type() == torch::kBFloat16 && PackedWeight::prompt_type() == torch::kBFloat16;
}

}  // namespace

HeadPanels::Panels::Panels(const Linear& qkv, const Linear& out, const LayerConfig& layer, torch::ScalarType type)
    : features_((layer.heads / layer.kv_heads + 2) * layer.head_dim),
      inner_(layer.heads / layer.kv_heads * layer.head_dim),
      d_model_(out.weight.shape()[0]) {
  const torch::NoGradGuard no_gradients;
  const int64_t groups = layer.kv_heads, width = layer.head_dim;
  const auto regrouped = [&](const torch::Tensor& rows) {
    std::vector<torch::Tensor> by_group;
    for (const auto& part : rows.split_with_sizes({layer.heads * width, groups * width, groups * width}, 0))
      by_group.push_back(part.unflatten(0, {groups, -1}));
    return at::cat(by_group, 1);
  };
  if (qkv.bias) bias_GF_ = regrouped(qkv.bias.tensor().detach());
  if (out.bias) bias_D_ = out.bias.tensor().detach();
  // Not Weight::cast(), which would keep its copy.
  weight_GFD_ = regrouped(qkv.weight.tensor().detach().to(type));
  const auto output_DF = out.weight.tensor().detach().to(type);
  if (!packs(weight_GFD_) || inner_ % 2 != 0) {
    output_GID_ = output_DF.unflatten(1, {groups, inner_}).permute({1, 2, 0}).contiguous();
    return;
  }
  for (int64_t g = 0; g < groups; ++g) {
    packed_projections_.emplace_back(weight_GFD_.size(2),
                                     std::vector<PackedWeight::Part>{{BlockType::bf16, features_}});
    packed_projections_.back().set_rows(0, weight_GFD_[g]);
  }
  weight_GFD_ = torch::Tensor();
  packed_output_.emplace(output_DF.size(1), std::vector<PackedWeight::Part>{{BlockType::bf16, output_DF.size(0)}});
  packed_output_->set_rows(0, output_DF);
}

void HeadPanels::Panels::project(const torch::Tensor& out_TF, const torch::Tensor& x_TD, int64_t group) const {
  const auto bias_F = bias_GF_.defined() ? bias_GF_[group] : torch::Tensor();
  if (packed_output_)
    packed_projections_[static_cast<size_t>(group)].product_into(out_TF, x_TD, {.bias = bias_F});
  else
    matmul_into(out_TF, x_TD, weight_GFD_[group].t(), bias_F, /*relu=*/false);
}

void HeadPanels::Panels::join(const torch::Tensor& out_TD, const torch::Tensor& x_TI,
                              std::span<const int64_t> groups) const {
  if (packed_output_) return packed_output_->product_of_columns(out_TD, x_TI, groups, inner_, {.bias = bias_D_});
  std::vector<torch::Tensor> chosen;
  for (const int64_t group : groups) chosen.push_back(output_GID_[group]);
  const auto output_ID = chosen.size() == 1 ? chosen[0] : at::cat(chosen);
  matmul_into(out_TD, x_TI, output_ID, bias_D_, /*relu=*/false);
}

const HeadPanels::Panels& HeadPanels::of(const Linear& qkv, const Linear& out, const LayerConfig& layer,
                                         torch::ScalarType type) {
  Key key{type, PackedWeight::prompt_type(), {}};
  for (const auto* linear : {&qkv, &out})
    for (const auto* weight : {&linear->weight, &linear->bias})
      if (*weight)
        key.values.emplace_back(weight->tensor().const_data_ptr(), static_cast<int64_t>(weight->tensor()._version()));
  if (key == key_) return panels_;
  panels_ = Panels(qkv, out, layer, type);
  key_ = key;
  return panels_;
}

PackedHeads::PackedHeads(const torch::Tensor& kept_BH, const LayerConfig& layer)
    : batch_(kept_BH.size(0)),
      groups_(layer.kv_heads),
      queries_(layer.heads / layer.kv_heads),
      width_(layer.head_dim),
      first_row_(1) {
  const auto kept_BG = kept_BH.to(torch::kCPU).view({batch_, groups_, queries_}).any(2).contiguous();
  const bool* kept = kept_BG.const_data_ptr<bool>();
  std::vector<int64_t> places;
  for (int64_t b = 0; b < batch_; ++b) {
    for (int64_t g = 0; g < groups_; ++g) {
      if (!kept[b * groups_ + g]) continue;
      sequence_.push_back(b);
      group_.push_back(g);
      places.push_back(b * groups_ + g);
    }
    first_row_.push_back(rows());
  }
  sequence_P_ = torch::tensor(sequence_, torch::kLong).to(kept_BH.device());
  place_P_ = torch::tensor(places, torch::kLong).to(kept_BH.device());
}

torch::Tensor PackedHeads::project(const torch::Tensor& x_BTD, const HeadPanels::Panels& panels) const {
  const auto x = x_BTD.contiguous();
  auto fused_PTF = at::empty({rows(), x.size(1), panels.features()}, x.options());
  for_each(rows(), [&](int64_t p) {
    const auto row = static_cast<size_t>(p);
    panels.project(fused_PTF[p], x[sequence_[row]], group_[row]);
  });
  return fused_PTF;
}

torch::Tensor PackedHeads::of_sequences(const torch::Tensor& values_B) const {
  return values_B.defined() ? values_B.index_select(0, sequence_P_.to(values_B.device())) : torch::Tensor();
}

torch::Tensor PackedHeads::of_heads(const torch::Tensor& values_BH) const {
  return values_BH.reshape({batch_ * groups_, queries_}).index_select(0, place_P_);
}

torch::Tensor PackedHeads::join(const torch::Tensor& out_PTRE, const HeadPanels::Panels& panels) const {
  const int64_t tokens = out_PTRE.size(1), inner = queries_ * width_;
  auto out_BTD = at::empty({batch_, tokens, panels.d_model()}, out_PTRE.options());
  for_each(batch_, [&](int64_t b) {
    const int64_t first = first_row_[static_cast<size_t>(b)], count = first_row_[static_cast<size_t>(b) + 1] - first;
    // The sequence's heads side by side, so that one product sums over them.
    const auto heads_TPRE = out_PTRE.narrow(0, first, count).transpose(0, 1).contiguous();
    panels.join(out_BTD[b], heads_TPRE.view({tokens, count * inner}),
                std::span(group_).subspan(static_cast<size_t>(first), static_cast<size_t>(count)));
  });
  return out_BTD;
}

}  // namespace prism
