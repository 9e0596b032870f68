#include "prism/models/decoder.h"

#include <ATen/Functions.h>

#include <cmath>

#include "prism/core/error.h"
#include "prism/kernels/cross_entropy.h"
#include "prism/layers/initialise.h"
#include "prism/models/cost.h"
#include "prism/models/recompute.h"

namespace prism {

DecoderImpl::DecoderImpl(ModelConfig config) : config_(std::move(config)) {
  check_memory(config_, sizeof(float));
  const auto rotary = std::make_shared<RotaryCache>();
  embedding = register_module("embedding", Embedding(config_.vocab_size, config_.d_model));
  for (size_t i = 0; i < config_.layers.size(); ++i)
    blocks.push_back(register_module("blocks_" + std::to_string(i),
                                     Block(config_.d_model, config_.norm_eps, config_.layers[i], i, rotary)));
  norm = register_module("norm", RmsNorm(config_.d_model, config_.norm_eps));
  if (!config_.tied) head = register_module("head", Linear(config_.d_model, config_.vocab_size));
}

void DecoderImpl::initialise(uint64_t seed) {
  const double residual_std = config_.init_std / std::sqrt(2.0 * static_cast<double>(blocks.size()));
  for (auto& parameter : named_parameters()) {
    const auto& name = parameter.key();
    if (parameter.value().dim() == 1) {
      torch::NoGradGuard no_gradients;
      parameter.value().fill_(1.0);
      continue;
    }
    const bool into_residual = name.ends_with("attention.out.weight") || name.ends_with("mlp.down.weight");
    initialise_normal(parameter.value(), into_residual ? residual_std : config_.init_std, seed, name);
  }
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
  Residual residual{embedding(tokens_BT.to(device())), {}};
  const bool recomputes = recomputes_ && torch::GradMode::is_enabled();
  for (auto& block : blocks)
    residual =
        recomputes ? recomputed(block, residual, context, compute_type_) : block(residual, context, compute_type_);
  if (context.cache != nullptr) context.cache->advance(tokens);
  return norm(residual.stream_BTD, residual.branch_BTD, compute_type_).normed;
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
