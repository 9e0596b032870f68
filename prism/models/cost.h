// What a model costs before it exists: parameters, FLOPs and cache, layer by layer.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/models/decoder.h"

namespace prism {

struct LayerCost {
  int64_t parameters = 0;  ///< weights that no earlier layer has
  /// Of one token in a forward pass over a full context: 2 for each value of a weight and product with it, and
  /// 2 H D (T + 1) for the causal products q k^T and p v, whose queries see (T + 1) / 2 keys on average. Norms,
  /// activations, rotation and softmax are not counted; the last alone depends on the number of heads.
  int64_t flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  ///< bfloat16
};

/// A module outside the layers: embedding, positions, final norm, head.
struct PartCost {
  std::string name;
  int64_t parameters = 0;  ///< weights that no earlier module has: none of a tied head
  int64_t flops_per_token = 0;
};

struct ModelCost {
  std::vector<LayerCost> layers;
  std::vector<PartCost> outside;  ///< the layers, in the model's order
  int64_t parameters = 0;         ///< distinct ones, of everything
  int64_t flops_per_token = 0;    ///< forward, head included; a training step takes three times that
  int64_t kv_bytes_per_token = 0;
};

/// Counts the weights that the model lists; none of them is held. @param config  complete.
ModelCost model_cost(const ModelConfig& config);
/// The same of a model as it is, whose layers may share weights.
ModelCost model_cost(const DecoderImpl& decoder);

/// What a schedule costs beyond the uniform model that has the heads and key/value heads of its last layer everywhere.
///
/// All differences are 0, the schedule is neutral, where the layers' heads split d_model and all have as many query
/// heads for each key/value head: keys and values are then d_model kv_heads / heads wide in every layer, whatever the
/// heads. Norms of queries and keys have gains as wide as a head, so they cost wide heads some parameters.
/// @param config  complete.
/// Source: arXiv 2606.27449, section 2.4, which has as many key/value heads as query heads.
struct ScheduleCost {
  int64_t parameters = 0, flops_per_token = 0, kv_bytes_per_token = 0;
  ModelCost uniform;  ///< of the uniform model
  bool neutral() const { return parameters == 0 && flops_per_token == 0 && kv_bytes_per_token == 0; }
};
ScheduleCost schedule_cost(const ModelConfig& config);

/// "+1.2M parameters (+1.0%), ..."; "neutral: ..." where nothing differs.
std::string describe(const ScheduleCost& cost);

/// What the system would otherwise answer by killing the process.
/// @param bytes  that each parameter will take. @throws InputError if all of them together do not fit into memory.
void check_memory(int64_t parameters, int64_t bytes);

}  // namespace prism
