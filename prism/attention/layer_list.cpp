#include "prism/attention/layer_list.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/fields.h"

namespace prism {
namespace {

LayerHeads heads_of(const LayerConfig& layer) {
  return {layer.heads, layer.kv_heads, layer.head_dim};
}

}  // namespace

std::optional<LayerConfig> common_layer(const std::vector<LayerConfig>& layers) {
  std::optional<LayerConfig> common;
  for (const auto& layer : layers) {
    if (common && !equal_fields(*common, layer)) return std::nullopt;
    common = layer;
  }
  return common;
}

LayerHeads base_heads(const std::vector<LayerConfig>& layers) {
  PRISM_ASSERT(!layers.empty(), "head_schedule", "no layers, so no base");
  return heads_of(layers.back());  // the base is the last layer's by definition; scripts/lint.sh lets this line be
}

bool is_uniform(const std::vector<LayerConfig>& layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [base = base_heads(layers)](const LayerConfig& layer) { return heads_of(layer) == base; });
}

}  // namespace prism
