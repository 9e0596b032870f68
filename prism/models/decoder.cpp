#include "prism/models/decoder.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>

#include "prism/core/error.h"
#include "prism/kernels/cross_entropy.h"
#include "prism/layers/initialise.h"
#include "prism/models/cost.h"
#include "prism/models/recompute.h"

namespace prism {
namespace {

void initialise_gpt2(const ModelConfig& config, uint64_t seed, const std::string& name, const torch::Tensor& weight) {
  const bool into_residual = name.ends_with("attention.out.weight") || name.ends_with("mlp.down.weight");
  const double share = into_residual ? 1 / std::sqrt(2.0 * static_cast<double>(config.layers.size())) : 1;
  initialise_normal(weight, config.init_std * share, seed, name);
}

/// @param fan_in  of the projection that the weight or bias belongs to.
void initialise_ladder(const ModelConfig& config, uint64_t seed, const std::string& name, const torch::Tensor& weight,
                       int64_t fan_in) {
  if (name == "embedding.weight" || name == "positions.weight") return initialise_normal(weight, 1, seed, name);
  if (name.find(".mlp.") != std::string::npos)
    return initialise_uniform(weight, 1 / std::sqrt(static_cast<double>(fan_in)), seed, name);
  initialise_normal(weight, 1 / std::sqrt(static_cast<double>(std::min(fan_in, config.d_model))), seed, name);
}

}  // namespace

DecoderImpl::DecoderImpl(ModelConfig config) : config_(std::move(config)) {
  check_memory(config_, sizeof(float));
  const auto rotary = std::make_shared<RotaryCache>();
  embedding = register_module("embedding", Embedding(config_.vocab_size, config_.d_model));
  if (config_.learned_positions) positions = register_module("positions", Embedding(config_.context, config_.d_model));
  for (size_t i = 0; i < config_.layers.size(); ++i)
    blocks.push_back(register_module("blocks_" + std::to_string(i),
                                     Block(config_.d_model, config_.norm_eps, config_.layers[i], i, rotary)));
  if (config_.final_norm) norm = register_module("norm", RmsNorm(config_.d_model, config_.norm_eps));
  if (!config_.tied) head = register_module("head", Linear(config_.d_model, config_.vocab_size));
}

void DecoderImpl::initialise(uint64_t seed) {
  const torch::NoGradGuard no_gradients;
  const auto parameters = named_parameters();
  for (const auto& parameter : parameters) {
    const auto& name = parameter.key();
    auto weight = parameter.value();
    const bool is_bias = name.ends_with(".bias");
    if (name.ends_with("norm.weight")) {
      weight.fill_(1.0);
    } else if (config_.initialisation == "ladder") {
      const auto& matrix = is_bias ? parameters[name.substr(0, name.size() - 4) + "weight"] : weight;
      initialise_ladder(config_, seed, name, weight, matrix.size(1));
    } else if (is_bias) {
      weight.zero_();
    } else {
      initialise_gpt2(config_, seed, name, weight);
    }
  }
}

torch::Tensor DecoderImpl::embed(const torch::Tensor& tokens_BT, const ForwardContext& context, int64_t past) {
  auto stream_BTD = embedding(tokens_BT.to(device()));
  if (!positions) return stream_BTD;
  if (context.positions_BT.defined()) return stream_BTD + positions(context.positions_BT);
  return stream_BTD + positions->weight.narrow(0, past, tokens_BT.size(1));
}

torch::Tensor DecoderImpl::forward(const torch::Tensor& tokens_BT, const ForwardContext& given) {
  const int64_t past = given.cache != nullptr ? given.cache->length() : 0, tokens = tokens_BT.size(1);
  PRISM_CHECK(past + tokens <= config_.context, "decoder",
              "expected at most {} positions, the model's context; found {}.", config_.context, past + tokens);
  const auto [lowest, highest] = tokens_BT.aminmax();
  PRISM_CHECK(lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < config_.vocab_size, "decoder",
              "expected token ids within 0-{}; found {}-{}; does the tokenizer belong to this model?",
              config_.vocab_size - 1, lowest.item<int64_t>(), highest.item<int64_t>());
  const ForwardContext context = on_device(given, device());
  Residual residual{embed(tokens_BT, context, past), {}};
  const bool recomputes = recomputes_ && torch::GradMode::is_enabled();
  for (auto& block : blocks)
    residual =
        recomputes ? recomputed(block, residual, context, compute_type_) : block(residual, context, compute_type_);
  if (context.cache != nullptr) context.cache->advance(tokens);
  const auto last = normed(norm, residual, compute_type_);
  if (context.probe != nullptr) context.probe->observe_residual(blocks.size(), last.sum);
  return last.normed;
}

torch::Tensor DecoderImpl::logits(const torch::Tensor& hidden) {
  const auto product = config_.tied ? at::linear(hidden, head_cast()) : head(hidden);
  return product.to(embedding->weight.scalar_type());
}

torch::Tensor DecoderImpl::loss(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT, double z_loss) {
  return head_cross_entropy(hidden_BTD.flatten(0, 1), head_weight(), head_cast(), labels_BT.flatten().to(device()),
                            z_loss);
}

torch::Tensor DecoderImpl::token_losses(const torch::Tensor& hidden_BTD, const torch::Tensor& labels_BT) {
  const auto losses = head_token_losses(hidden_BTD.flatten(0, 1), head_cast(), labels_BT.flatten().to(device()));
  return losses.view(labels_BT.sizes()).cpu();
}

const torch::Tensor& DecoderImpl::head_weight() const {
  return config_.tied ? embedding->weight : head->weight;
}

const torch::Tensor& DecoderImpl::head_cast() {
  return config_.tied ? embedding->cast(compute_type_) : head->cast(compute_type_);
}

}  // namespace prism
