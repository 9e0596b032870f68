// What a list of layers says as a whole.
//
//   if (const auto layer = common_layer(config.layers)) ...    // every layer is this one
//   const LayerHeads base = base_heads(config.layers);         // what the uniform model has in every layer
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "prism/attention/layer_config.h"

namespace prism {

/// The layer that all of them are; none where two differ in any field, or there are none.
std::optional<LayerConfig> common_layer(const std::vector<LayerConfig>& layers);

/// Heads of one layer, and their width.
struct LayerHeads {
  int64_t heads = 0, kv_heads = 0, head_dim = 0;
  friend bool operator==(const LayerHeads&, const LayerHeads&) = default;
};

/// The base of a head schedule: the heads of its last layer, which the uniform model of the same size has in every
/// layer.
/// @param layers  at least one.
/// Source: arXiv 2606.27449, section 2.1.
LayerHeads base_heads(const std::vector<LayerConfig>& layers);

/// Whether every layer has the heads of the base.
bool is_uniform(const std::vector<LayerConfig>& layers);

}  // namespace prism
