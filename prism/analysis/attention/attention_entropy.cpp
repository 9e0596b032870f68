#include "prism/analysis/attention/attention_entropy.h"

#include <ATen/Functions.h>

#include "prism/core/statistics.h"

namespace prism {
namespace {

torch::Tensor entropy_of_rows(const AttentionRows& rows) {
  return at::special_entr(rows.weights_RTS).sum(-1);
}

}  // namespace

AttentionEntropyProbe::AttentionEntropyProbe(const std::vector<LayerConfig>& layers)
    : HeadMeansProbe(layers, QueryRange::all, {entropy_of_rows}, "attention_entropy") {}

std::vector<LayerEntropy> AttentionEntropyProbe::result() const {
  std::vector<LayerEntropy> result;
  for (const auto& head_entropies : means(0)) {
    const auto index = static_cast<int64_t>(result.size());
    result.push_back({.layer = index,
                      .heads = static_cast<int64_t>(head_entropies.size()),
                      .entropy = statistic(head_entropies).mean,
                      .head_entropies = head_entropies});
  }
  return result;
}

}  // namespace prism
