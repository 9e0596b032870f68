#include "prism/analysis/text_budgets.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <tuple>

#include "prism/analysis/attention/attention_maps.h"
#include "prism/analysis/budget_groups.h"
#include "prism/data/labelled/example_loader.h"
#include "prism/kernels/to_vector.h"
#include "prism/models/batch.h"

namespace prism {
namespace {

/// The `count` heads with the largest p, the largest first; of equal ones, the lower head.
std::vector<int64_t> likeliest_heads(const torch::Tensor& p_H, int64_t count) {
  const auto order = std::get<1>(at::sort(p_H, /*stable=*/true, 0, /*descending=*/true));
  std::vector<int64_t> heads;
  for (int64_t i = 0; i < std::min(count, p_H.size(0)); ++i) heads.push_back(order[i].item<int64_t>());
  return heads;
}

}  // namespace

TextBudgets read_text_budgets(const Classifier& classifier, std::span<const int32_t> tokens, int64_t maps) {
  const torch::NoGradGuard no_gradients;
  auto batch = pad_texts({tokens}, classifier->config().context);
  ExampleTensors tensors(batch);
  Budgets budgets(classifier->config().budget_tau);
  const auto& decisions = budgets.decisions();
  AttentionMapProbe probe([&](size_t layer, int64_t) {
    // A layer's budget decides before its attention.
    if (layer >= decisions.size() || !decisions[layer].share_B.defined()) return std::vector<int64_t>();
    return likeliest_heads(decisions[layer].probability_BH[0], maps);
  });
  tensors.context.budgets = &budgets;
  tensors.context.probe = &probe;
  const auto hidden = classifier(tensors.tokens_BT, tensors.context);
  const auto logits_BC = classifier->head.logits(hidden, tensors.context.lengths_B);
  TextBudgets found{
      .predicted = logits_BC[0].argmax().item<int64_t>(), .tokens = batch.tokens, .layers = {}, .maps = {}};
  for (size_t l = 0; l < decisions.size(); ++l) {
    const auto& [share_B, probability_BH, kept_BH] = decisions[l];
    if (!share_B.defined()) continue;
    found.layers.push_back(
        {static_cast<int64_t>(l), share_B[0].item<double>(), to_doubles(probability_BH[0]), kept_heads(kept_BH[0])});
  }
  for (const auto& map : probe.maps()) {
    const auto& decision = decisions[static_cast<size_t>(map.layer)];
    found.maps.push_back({map.layer, map.head, decision.probability_BH[0][map.head].item<double>(),
                          decision.kept_BH[0][map.head].item<bool>(), rows_of(map)});
  }
  return found;
}

}  // namespace prism
