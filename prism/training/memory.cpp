#include "prism/training/memory.h"

#include <algorithm>
#include <map>

#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/models/cost.h"
#include "prism/training/fixed_parameters.h"

namespace prism {
namespace {

/// Bytes per token in one layer: all activations, and those kept with recompute.
struct LayerBytes {
  int64_t all = 0, stream = 0;
};

/// Bytes of a weight, its gradient and its moments.
int64_t state_bytes(const WeightEntry& entry) {
  constexpr int64_t kValue = sizeof(float), kMoments = 2;
  const int64_t rows = entry.weight.shape()[0], row_bytes = entry.weight.numel() / rows * kValue;
  if (is_fixed(entry)) return rows * row_bytes;
  int64_t trained = 0;
  for (const auto& tensor : entry.tensors)
    if (!entry.weight.is_fixed(tensor.first_row, tensor.rows)) trained += tensor.rows;
  return (2 * rows + kMoments * trained) * row_bytes;
}

}  // namespace

int64_t activation_bytes(const std::vector<WeightEntry>& weights, int64_t tokens, torch::ScalarType type,
                         bool recompute) {
  const auto value = static_cast<int64_t>(c10::elementSize(type)), stream_value = int64_t{sizeof(float)};
  std::map<size_t, LayerBytes> layers;
  for (const auto& entry : weights) {
    if (entry.traits.role != WeightRole::matrix) continue;
    const int64_t out = entry.weight.shape()[0], in = entry.traits.fan_in;
    for (const auto& use : entry.uses) {
      if (!use.layer) continue;
      auto& layer = layers[*use.layer];
      layer.all += in * value + out * (entry.traits.into_stream ? stream_value : value);
      if (entry.traits.into_stream) layer.stream = std::max(layer.stream, out * (stream_value + value));
    }
  }
  int64_t all = 0, streams = 0, largest = 0;
  for (const auto& [index, layer] : layers) {
    all += layer.all;
    streams += layer.stream;
    largest = std::max(largest, layer.all);
  }
  return tokens * (recompute ? streams + largest : all);
}

void check_training_memory(const std::vector<WeightEntry>& weights, const Recipe& recipe, torch::ScalarType type) {
  int64_t bytes = 0;
  for (const auto& entry : weights) bytes += state_bytes(entry);
  check_memory(bytes, 1);
  const int64_t tokens = recipe.train.batch_rows * recipe.model.context;
  const auto state = static_cast<double>(bytes),
             activations = static_cast<double>(activation_bytes(weights, tokens, type, recipe.train.recompute)),
             total = static_cast<double>(total_memory_bytes());
  PRISM_CHECK(state + activations < total, "train",
              "expected weights and activations that fit into memory, {}B; found {}B of weights, gradients and moments "
              "and {}B of activations for {} rows of {} tokens; lower train.batch_rows{}.",
              short_number(total), short_number(state), short_number(activations), recipe.train.batch_rows,
              recipe.model.context, recipe.train.recompute ? "" : " or set train.recompute");
}

}  // namespace prism
