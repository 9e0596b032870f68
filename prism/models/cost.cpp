#include "prism/models/cost.h"

#include <algorithm>
#include <cmath>

#include "prism/attention/kv_cache.h"
#include "prism/attention/layer_list.h"
#include "prism/core/error.h"
#include "prism/core/machine.h"
#include "prism/core/progress.h"
#include "prism/models/classifier.h"
#include "prism/models/decoder.h"

namespace prism {
namespace {

/// FLOPs per token of the products q k^T and p v in a sequence of `tokens`.
int64_t attention_flops(const LayerConfig& layer, bool is_causal, int64_t tokens) {
  int64_t keys_twice = is_causal ? tokens + 1 : 2 * tokens;
  // The first window tokens see (window + 1) / 2 keys on average, the others a whole window.
  if (const int64_t window = layer.window; window > 0 && window < tokens)
    keys_twice = 2 * window - window * (window - 1) / tokens;
  return 2 * layer.heads * layer.head_dim * keys_twice;
}

/// Finds the part with this name; appends a new one if there is none.
PartCost& part_of(std::vector<PartCost>& parts, const std::string& name) {
  const auto found = std::find_if(parts.begin(), parts.end(), [&](const auto& part) { return part.name == name; });
  return found != parts.end() ? *found : parts.emplace_back(PartCost{.name = name});
}

}  // namespace

ModelCost model_cost(const ModelConfig& config) {
  return config.classes > 0 ? model_cost(ClassifierImpl(config)) : model_cost(DecoderImpl(config));
}

ModelCost model_cost(const Trunk& model) {
  const auto& config = model.config();
  ModelCost cost;
  for (const auto& layer : config.layers) {
    auto& of_layer = cost.layers.emplace_back();
    of_layer.flops_per_token = attention_flops(layer, config.attention == "causal", config.context);
    of_layer.kv_bytes_per_token = config.classes > 0 ? 0 : kv_cache_bytes({layer}, 1, torch::kBFloat16);
    cost.flops_per_token += of_layer.flops_per_token;
    cost.kv_bytes_per_token += of_layer.kv_bytes_per_token;
  }
  for (const auto& entry : model.weights()) {
    if (entry.traits.training_only) continue;
    const int64_t parameters = entry.weight.numel();
    cost.parameters += parameters;
    for (size_t i = 0; i < entry.uses.size(); ++i) {
      const auto& use = entry.uses[i];
      const int64_t own_parameters = i == 0 ? parameters : 0, flops = 2 * parameters * use.products;
      cost.flops_per_token += flops;
      if (use.layer) {
        cost.layers[*use.layer].parameters += own_parameters;
        cost.layers[*use.layer].flops_per_token += flops;
      } else {
        auto& part = part_of(cost.outside, use.module);
        part.parameters += own_parameters;
        part.flops_per_token += flops;
      }
    }
  }
  return cost;
}

double attention_part_flops(const AttentionOptions& options, const LayerConfig& layer, int64_t tokens, double groups) {
  const int64_t width = layer.heads * layer.head_dim, kv_width = layer.kv_heads * layer.head_dim;
  const int64_t out_width = layer.output_projection ? width : 0;
  const auto projections = static_cast<double>(2 * options.d_model * (width + 2 * kv_width + out_width));
  const auto products = static_cast<double>(attention_flops(layer, options.is_causal, tokens));
  const double share = groups / static_cast<double>(layer.kv_heads);
  // Without an output projection, all heads are projected (attention.cpp).
  return static_cast<double>(tokens) * ((layer.output_projection ? share : 1) * projections + share * products);
}

double budget_network_flops(const LayerConfig& layer, int64_t d_model) {
  int64_t outputs = 0;
  if (layer.budget.kind == "learned") outputs = d_model + 1 + layer.heads;
  if (layer.budget.kind == "fixed") outputs = layer.heads;
  return 2.0 * static_cast<double>(d_model * outputs);
}

ScheduleCost schedule_cost(const ModelConfig& config) {
  ModelConfig same = config;
  const auto base = base_heads(config.layers);
  bool must_be_neutral = true;
  for (auto& layer : same.layers) {
    must_be_neutral = must_be_neutral && !layer.qk_norm && !layer.budget.is_on() &&
                      layer.heads * layer.head_dim == config.d_model &&
                      layer.heads * base.kv_heads == base.heads * layer.kv_heads;
    layer.heads = base.heads;
    layer.kv_heads = base.kv_heads;
    layer.head_dim = base.head_dim;
  }
  const auto cost = model_cost(config);
  ScheduleCost difference;
  difference.uniform = model_cost(same);
  difference.parameters = cost.parameters - difference.uniform.parameters;
  difference.flops_per_token = cost.flops_per_token - difference.uniform.flops_per_token;
  difference.kv_bytes_per_token = cost.kv_bytes_per_token - difference.uniform.kv_bytes_per_token;
  PRISM_ASSERT(!must_be_neutral || difference.neutral(), "schedule_cost", "a neutral schedule costs {}",
               describe(difference));
  return difference;
}

std::string describe(const ScheduleCost& cost) {
  if (cost.neutral()) return "neutral: same parameters, FLOPs and cache bytes as the uniform model";
  const auto part = [](const char* what, int64_t more, int64_t of) {
    if (of == 0) return fmt::format("{} {}", more, what);  // the cache of a classifier
    return fmt::format("{}{} {} ({:+.2f}%)", more < 0 ? "-" : "+", short_number(std::abs(static_cast<double>(more))),
                       what, 100 * static_cast<double>(more) / static_cast<double>(of));
  };
  return fmt::format("{}, {}, {}", part("parameters", cost.parameters, cost.uniform.parameters),
                     part("FLOPs per token", cost.flops_per_token, cost.uniform.flops_per_token),
                     part("cache bytes per token", cost.kv_bytes_per_token, cost.uniform.kv_bytes_per_token));
}

void check_memory(int64_t parameters, int64_t bytes) {
  const double needed = static_cast<double>(bytes) * static_cast<double>(parameters);
  const auto total = static_cast<double>(total_memory_bytes());
  PRISM_CHECK(needed < total, "model",
              "expected parameters that fit into memory, {}B; found {}B; choose a smaller model.", short_number(total),
              short_number(needed));
}

}  // namespace prism
