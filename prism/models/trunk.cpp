#include "prism/models/trunk.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "prism/core/error.h"
#include "prism/models/recompute.h"

namespace prism {

Initialisation initialisation_of(const ModelConfig& config) {
  return {.scheme = config.initialisation,
          .std = config.init_std,
          .layers = config.layers.size(),
          .d_model = config.d_model};
}

namespace {

/// Makes another pair of handles refer to an owner's weights.
void share(const WeightPair& owner, const WeightPair& user) {
  user.up = owner.up;
  user.down = owner.down;
}

}  // namespace

Trunk::Trunk(ModelConfig config) : embedding(config.vocab_size, config.d_model), config_(std::move(config)) {
  const auto rotary = std::make_shared<RotaryCache>();
  if (config_.learned_positions) positions = Embedding(config_.context, config_.d_model);
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    blocks.push_back(std::make_shared<Block>(config_, i, rotary));
    if (const int64_t owner = config_.layers[i].mirror_of; owner >= 0)
      share(blocks[static_cast<size_t>(owner)]->mlp->pair(), blocks[i]->mlp->pair());
  }
  const bool layer_norms = std::all_of(config_.layers.begin(), config_.layers.end(),
                                       [](const LayerConfig& layer) { return layer.norm == "layer"; });
  if (config_.final_norm)
    norm = Norm(
        {.width = config_.d_model, .eps = config_.norm_eps, .kind = layer_norms ? NormKind::layer : NormKind::rms});
}

void Trunk::initialise(uint64_t seed) {
  prism::initialise(weights(), initialisation_of(config_), seed);
}

void Trunk::visit(WeightVisitor& v) const {
  v.module("embedding", "model.embed_tokens", embedding);
  v.module("positions", "model.embed_positions", positions);
  for (size_t i = 0; i < blocks.size(); ++i)
    v.layer(i, fmt::format("blocks_{}", i), fmt::format("model.layers.{}", i), *blocks[i]);
  v.module("norm", "model.norm", norm);
}

torch::Tensor Trunk::embed(const torch::Tensor& tokens_BT, const ForwardContext& context, int64_t past) const {
  auto stream_BTD = embedding(tokens_BT.to(device()));
  if (!positions && !config_.sinusoidal_positions) return stream_BTD;
  if (!positions && (!sinusoids_TD_.defined() || sinusoids_TD_.device() != stream_BTD.device() ||
                     sinusoids_TD_.scalar_type() != stream_BTD.scalar_type()))
    sinusoids_TD_ = sinusoidal_positions(config_.context, config_.d_model).to(stream_BTD.options());
  const auto& table_TD = positions ? positions.weight.tensor() : sinusoids_TD_;
  if (!context.positions_BT.defined()) return stream_BTD + table_TD.narrow(0, past, tokens_BT.size(1));
  return stream_BTD + (positions ? positions(context.positions_BT) : table_TD.index({context.positions_BT}));
}

torch::Tensor Trunk::forward(const torch::Tensor& tokens_BT, const ForwardContext& given) const {
  const int64_t past = given.cache != nullptr ? given.cache->length() : 0, tokens = tokens_BT.size(1);
  PRISM_CHECK(past + tokens <= config_.context, "model",
              "expected at most {} positions, the model's context; found {}; shorten the input.", config_.context,
              past + tokens);
  const auto [lowest, highest] = tokens_BT.aminmax();
  PRISM_CHECK(lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < config_.vocab_size, "model",
              "expected token ids from 0 to {}; found {} to {}; use the tokenizer that belongs to this model.",
              config_.vocab_size - 1, lowest.item<int64_t>(), highest.item<int64_t>());
  ForwardContext context = on_device(given, device());
  context.budget_tau = config_.budget_tau;
  Residual residual{embed(tokens_BT, context, past), {}};
  const bool recomputes = recomputes_ && torch::GradMode::is_enabled();
  for (const auto& block : blocks)
    residual = recomputes ? recomputed(block, residual, context, compute_type_)
                          : block->forward(residual, context, compute_type_);
  if (context.cache != nullptr) context.cache->advance(tokens);
  const auto last = normed(norm, residual, compute_type_);
  if (context.probe != nullptr) context.probe->observe_residual(blocks.size(), last.stream);
  return last.normed;
}

}  // namespace prism
