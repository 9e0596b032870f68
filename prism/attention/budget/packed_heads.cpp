#include "prism/attention/budget/packed_heads.h"

#include <ATen/Functions.h>
#include <ATen/Parallel.h>

#include <functional>

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

}  // namespace

const HeadPanels::Panels& HeadPanels::of(const Linear& qkv, const LayerConfig& layer, torch::ScalarType type) {
  const auto& weight = qkv.weight.tensor();
  Key key{weight.const_data_ptr(), nullptr, static_cast<int64_t>(weight._version()), -1, type};
  if (qkv.bias) {
    key.bias = qkv.bias.tensor().const_data_ptr();
    key.bias_version = static_cast<int64_t>(qkv.bias.tensor()._version());
  }
  if (key == key_) return panels_;
  const torch::NoGradGuard no_gradients;
  const int64_t groups = layer.kv_heads, width = layer.head_dim, queries = layer.heads * width;
  const auto regrouped = [&](const torch::Tensor& rows) {
    const auto parts = rows.split_with_sizes({queries, groups * width, groups * width}, 0);
    std::vector<torch::Tensor> by_group;
    for (const auto& part : parts) by_group.push_back(part.unflatten(0, {groups, -1}));
    return at::cat(by_group, 1);
  };
  panels_.weight_GFD = regrouped(qkv.weight.cast(type).detach());
  panels_.bias_GF = qkv.bias ? regrouped(qkv.bias.tensor().detach()) : torch::Tensor();
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
  auto fused_PTF = at::empty({rows(), x_BTD.size(1), panels.weight_GFD.size(1)}, x_BTD.options());
  for_each(rows(), [&](int64_t p) {
    const auto row = static_cast<size_t>(p);
    const auto bias = panels.bias_GF.defined() ? panels.bias_GF[group_[row]] : torch::Tensor();
    matmul_into(fused_PTF[p], x_BTD[sequence_[row]], panels.weight_GFD[group_[row]].t(), bias, /*relu=*/false);
  });
  return fused_PTF;
}

torch::Tensor PackedHeads::of_sequences(const torch::Tensor& values_B) const {
  return values_B.defined() ? values_B.index_select(0, sequence_P_.to(values_B.device())) : torch::Tensor();
}

torch::Tensor PackedHeads::join(torch::Tensor out_PTRE, const torch::Tensor& weight_BH, const Linear& out) const {
  const int64_t tokens = out_PTRE.size(1), inner = queries_ * width_;
  const auto type = out_PTRE.scalar_type();
  const auto weight_PR = weight_BH.reshape({batch_ * groups_, queries_}).index_select(0, place_P_).to(type);
  const auto weighted_PTI = out_PTRE.mul_(weight_PR.view({rows(), 1, queries_, 1})).reshape({rows(), tokens, inner});
  const auto& columns = out.weight.cast(type);  // [D, H E]
  const auto sum_type = type == torch::kBFloat16 ? torch::kFloat : type;
  auto sum_BTD = at::empty({batch_, tokens, columns.size(0)}, out_PTRE.options().dtype(sum_type));
  for_each(batch_, [&](int64_t b) {
    const auto sum = sum_BTD[b];
    if (out.bias) sum.copy_(out.bias.tensor().detach().expand_as(sum));
    const auto sequence = static_cast<size_t>(b);
    for (int64_t p = first_row_[sequence]; p < first_row_[sequence + 1]; ++p) {
      const bool is_first = p == first_row_[sequence] && !out.bias;
      const auto panel =
          columns.slice(1, group_[static_cast<size_t>(p)] * inner, (group_[static_cast<size_t>(p)] + 1) * inner);
      matmul_into(sum, weighted_PTI[p], panel.t(), /*accumulate=*/!is_first);
    }
  });
  return sum_BTD.to(type);
}

}  // namespace prism
