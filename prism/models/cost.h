// What a model costs before it exists: parameters, FLOPs and cache, layer by layer.
#pragma once

#include <cstdint>
#include <vector>

#include "prism/models/model_config.h"

namespace prism {

struct LayerCost {
  int64_t parameters = 0;
  /// Of one token in a forward pass over a full context: 2 per weight of a matmul, and 2 H D (T + 1) for the causal
  /// products q k^T and p v, whose queries see (T + 1) / 2 keys on average. Norms, activations, rotation
  /// and softmax are not counted; the last alone depends on the number of heads.
  int64_t flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  ///< bfloat16
};

struct ModelCost {
  std::vector<LayerCost> layers;
  int64_t embedding_parameters = 0;
  int64_t head_parameters = 0;  ///< 0 when tied
  int64_t parameters = 0;       ///< distinct ones, of everything
  int64_t flops_per_token = 0;  ///< forward, head included; a training step takes three times that
  int64_t kv_bytes_per_token = 0;
};

/// @param config  complete.
ModelCost model_cost(const ModelConfig& config);

/// What the system would otherwise answer by killing the process.
/// @param bytes  that each parameter will take. @throws InputError if all of them together do not fit into memory.
void check_memory(const ModelConfig& config, int64_t bytes);

}  // namespace prism
