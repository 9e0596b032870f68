#include "prism/models/cost.h"

#include <cmath>

#include "prism/attention/kv_cache.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"

namespace prism {
namespace {

/// Weights of the feed-forward part's products.
int64_t ffn_weights(const FfnConfig& ffn, int64_t d_model) {
  if (ffn.kind == "swiglu") return 3 * d_model * ffn.width;
  return 2 * d_model * ffn.width + (ffn.depth - 1) * ffn.width * ffn.width;
}

LayerCost layer_cost(const LayerConfig& layer, int64_t d_model, int64_t context) {
  const int64_t projected = (layer.output_projection ? 2 : 1) * layer.heads + 2 * layer.kv_heads;
  const int64_t attention = d_model * layer.head_dim * projected;
  const int64_t feed_forward = ffn_weights(layer.ffn, d_model);
  LayerCost cost;
  cost.parameters = attention + feed_forward;
  if (layer.ffn.bias) cost.parameters += layer.ffn.depth * layer.ffn.width + d_model;
  if (layer.norm != "none") cost.parameters += 2 * d_model;
  if (layer.qk_norm) cost.parameters += 2 * layer.head_dim;
  cost.flops_per_token = 2 * (attention + feed_forward) + 2 * layer.heads * layer.head_dim * (context + 1);
  cost.kv_bytes_per_token = kv_cache_bytes({layer}, 1, 2);
  return cost;
}

}  // namespace

ModelCost model_cost(const ModelConfig& config) {
  ModelCost cost;
  cost.embedding_parameters = config.vocab_size * config.d_model;
  cost.head_parameters = config.tied ? 0 : cost.embedding_parameters;
  cost.parameters = cost.embedding_parameters + cost.head_parameters;
  if (config.learned_positions) cost.parameters += config.context * config.d_model;
  if (config.final_norm) cost.parameters += config.d_model;
  cost.flops_per_token = 2 * config.vocab_size * config.d_model;
  for (const auto& layer : config.layers) {
    cost.layers.push_back(layer_cost(layer, config.d_model, config.context));
    cost.parameters += cost.layers.back().parameters;
    cost.flops_per_token += cost.layers.back().flops_per_token;
    cost.kv_bytes_per_token += cost.layers.back().kv_bytes_per_token;
  }
  return cost;
}

ScheduleCost schedule_cost(const ModelConfig& config) {
  ModelConfig same = config;
  const auto& last = config.layers.back();
  bool must_be_neutral = true;
  for (auto& layer : same.layers) {
    must_be_neutral = must_be_neutral && !layer.qk_norm && layer.heads * layer.head_dim == config.d_model &&
                      layer.heads * last.kv_heads == last.heads * layer.kv_heads;
    layer.heads = last.heads;
    layer.kv_heads = last.kv_heads;
    layer.head_dim = last.head_dim;
  }
  const auto cost = model_cost(config);
  ScheduleCost difference;
  difference.uniform = model_cost(same);
  difference.parameters = cost.parameters - difference.uniform.parameters;
  difference.flops_per_token = cost.flops_per_token - difference.uniform.flops_per_token;
  difference.kv_bytes_per_token = cost.kv_bytes_per_token - difference.uniform.kv_bytes_per_token;
  PRISM_ASSERT(!must_be_neutral || difference.neutral(), "schedule_cost", "a neutral schedule with {}",
               describe(difference));
  return difference;
}

std::string describe(const ScheduleCost& cost) {
  if (cost.neutral()) return "neutral: as many parameters, FLOPs and cache bytes as the uniform model";
  const auto part = [](const char* what, int64_t more, int64_t of) {
    return fmt::format("{}{} {} ({:+.2f}%)", more < 0 ? "-" : "+", short_number(std::abs(static_cast<double>(more))),
                       what, 100 * static_cast<double>(more) / static_cast<double>(of));
  };
  return fmt::format("{}, {}, {}", part("parameters", cost.parameters, cost.uniform.parameters),
                     part("FLOPs a token", cost.flops_per_token, cost.uniform.flops_per_token),
                     part("cache bytes a token", cost.kv_bytes_per_token, cost.uniform.kv_bytes_per_token));
}

void check_memory(const ModelConfig& config, int64_t bytes) {
  const double needed = static_cast<double>(bytes) * static_cast<double>(model_cost(config).parameters);
  const auto total = static_cast<double>(total_memory_bytes());
  PRISM_CHECK(needed < total, "model",
              "expected parameters that fit into memory, {}B; found {}B of them; choose a smaller model.",
              short_number(total), short_number(needed));
}

}  // namespace prism
