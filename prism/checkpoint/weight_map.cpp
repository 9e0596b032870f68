#include "prism/checkpoint/weight_map.h"

#include <algorithm>
#include <iterator>
#include <optional>

namespace prism {

namespace {

/// @param of  returns the wanted tensor of a weight, in the weight's shape or undefined.
std::vector<NamedTensor> in_order_of_files(const std::vector<WeightEntry>& weights,
                                           torch::Tensor (*of)(const Weight&)) {
  std::vector<NamedTensor> tensors, late;
  std::optional<size_t> layer;
  const auto close_layer = [&] {
    std::move(late.begin(), late.end(), std::back_inserter(tensors));
    late.clear();
  };
  for (const auto& entry : weights) {
    if (entry.layer() != layer) close_layer();
    layer = entry.layer();
    // All file versions store the head gains at the end of their layer.
    auto& list = entry.traits.role == WeightRole::head_gain ? late : tensors;
    for (const auto& tensor : entry.tensors) list.push_back({tensor.name, tensor.of(of(entry.weight))});
  }
  close_layer();
  return tensors;
}

}  // namespace

std::vector<NamedTensor> file_tensors(const std::vector<WeightEntry>& weights) {
  return in_order_of_files(weights, [](const Weight& weight) { return weight.tensor(); });
}

std::vector<NamedTensor> file_gradients(const std::vector<WeightEntry>& weights) {
  return in_order_of_files(weights, [](const Weight& weight) { return weight.tensor().grad(); });
}

}  // namespace prism
