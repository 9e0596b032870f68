// Properties of a whole list of layers.
//
//   if (const auto layer = common_layer(config.layers)) ...    // every layer equals this one
//   const LayerHeads base = base_heads(config.layers);         // the heads of the uniform model
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prism/attention/layer_config.h"

namespace prism {

/// The layer that all others equal; std::nullopt if two layers differ in any field or there are no layers.
std::optional<LayerConfig> common_layer(const std::vector<LayerConfig>& layers);

/// Number and width of one layer's heads.
struct LayerHeads {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  friend bool operator==(const LayerHeads&, const LayerHeads&) = default;
};

/// The base of a head schedule: the heads of its last layer. The uniform model of the same size has them in every
/// layer.
/// @param layers  at least one.
/// Source: arXiv 2606.27449, section 2.1.
LayerHeads base_heads(const std::vector<LayerConfig>& layers);

/// Returns true if every layer has the heads of the base.
bool is_uniform(const std::vector<LayerConfig>& layers);

}  // namespace prism
