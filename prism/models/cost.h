// Parameters, FLOPs and cache size of a model, layer by layer, computed from its config.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "prism/models/trunk.h"

namespace prism {

struct LayerCost {
  int64_t parameters = 0;  ///< excluding weights shared with an earlier layer
  /// Average per token in a forward pass over a full context of T tokens: 2 for each weight value and product with it,
  /// and for q k^T and p v 4 H D for each key that a query sees: T keys, or (T + 1) / 2 on average if attention is
  /// causal. Norms, activations, rotation and softmax are not counted; of these only softmax depends on the number of
  /// heads.
  int64_t flops_per_token = 0;
  int64_t kv_bytes_per_token = 0;  ///< bfloat16; 0 in classifiers, which have no cache
};

/// A module outside the layers: embedding, positions, final norm or head.
struct PartCost {
  std::string name;
  int64_t parameters = 0;  ///< excluding weights shared with an earlier module; 0 for a tied head
  int64_t flops_per_token = 0;
};

struct ModelCost {
  std::vector<LayerCost> layers;
  std::vector<PartCost> outside;  ///< modules outside the layers, in the model's order
  int64_t parameters = 0;         ///< of the whole model, shared weights once; without those that only training uses
  int64_t flops_per_token = 0;    ///< forward pass, head included; a training step takes three times as many
  int64_t kv_bytes_per_token = 0;
};

/// Computes the cost from the model's list of weights, without allocating them. @param config  must be complete.
ModelCost model_cost(const ModelConfig& config);
/// The same for an existing model, whose layers may share weights.
ModelCost model_cost(const Trunk& model);

/// FLOPs of a layer's attention part for one sequence: its projections, q k^T and p v.
/// @param tokens  of the sequence. @param groups  number of key/value heads computed, with their query heads.
double attention_part_flops(const AttentionOptions& options, const LayerConfig& layer, int64_t tokens, double groups);
/// FLOPs of the networks of a layer's head budget, once per sequence; 0 without a budget.
double budget_network_flops(const LayerConfig& layer, int64_t d_model);

/// Cost of a schedule minus that of the uniform model, which has the last layer's heads and key/value heads in every
/// layer.
///
/// A schedule is neutral if all differences are 0. This holds if every layer's heads split d_model and all layers have
/// the same ratio of query heads to key/value heads: keys and values are then d_model kv_heads / heads wide in every
/// layer. QK-norms add parameters for wide heads, because their gains are as wide as a head; head budgets score each
/// head.
/// @param config  must be complete.
/// Source: arXiv 2606.27449, section 2.4, which has as many key/value heads as query heads.
struct ScheduleCost {
  int64_t parameters = 0, flops_per_token = 0, kv_bytes_per_token = 0;
  ModelCost uniform;  ///< cost of the uniform model
  bool neutral() const { return parameters == 0 && flops_per_token == 0 && kv_bytes_per_token == 0; }
};
ScheduleCost schedule_cost(const ModelConfig& config);

/// Text such as "+1.2M parameters (+1.0%), ...", or "neutral: ..." if nothing differs.
std::string describe(const ScheduleCost& cost);

/// Checks that the parameters fit into memory, before the system kills the process for lack of it.
/// @param bytes  memory per parameter. @throws InputError if they do not fit.
void check_memory(int64_t parameters, int64_t bytes);

}  // namespace prism
