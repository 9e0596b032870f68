#include "prism/models/trunk.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <utility>

#include "prism/attention/word_positions.h"
#include "prism/core/error.h"
#include "prism/models/recompute.h"
#include "prism/tokenizer/word_opening.h"

namespace prism {

Initialisation initialisation_of(const ModelConfig& config) {
  return {.scheme = config.initialisation,
          .std = config.init_std,
          .layers = config.layers.size(),
          .d_model = config.d_model};
}

Trunk::Trunk(ModelConfig config) : embedding(config.vocab_size, config.d_model), config_(std::move(config)) {
  const auto rotary = std::make_shared<RotaryCache>();
  if (config_.learned_positions) positions = Embedding(config_.context, config_.d_model);
  for (size_t i = 0; i < config_.layers.size(); ++i) {
    blocks.push_back(std::make_shared<Block>(config_, i, rotary));
    if (const int64_t owner = config_.layers[i].mirror_of; owner >= 0) share_pair(static_cast<size_t>(owner), i);
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

bool Trunk::freezes(const WeightEntry& entry) const {
  if (entry.weight == embedding.weight) return true;
  // Head budgets take panels of the attention's weights, one for each head.
  const bool has_budget = entry.layer() && config_.layers[*entry.layer()].budget.is_on();
  return entry.products() > 0 && entry.weight.shape().size() == 2 && (!has_budget || entry.traits.feed_forward);
}

void Trunk::freeze() const {
  for (const auto& entry : weights())
    if (freezes(entry)) entry.weight.freeze();
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

void Trunk::share_pair(size_t owner, size_t user) const {
  const auto from = blocks[owner]->mlp->pair(), to = blocks[user]->mlp->pair();
  to.up = from.up;
  to.down = from.down;
}

void Trunk::set_word_starts(std::vector<uint8_t> starts) {
  word_starts_ = std::move(starts);
  if (!word_starts_.empty()) word_starts_.resize(static_cast<size_t>(config_.vocab_size));
}

int64_t Trunk::word_opening(std::span<const int32_t> before) const {
  return word_starts_.empty() ? 0 : tokens_since_start(before, word_starts_).value_or(std::ssize(before));
}

torch::Tensor Trunk::find_word_positions(const torch::Tensor& tokens_BT, const ForwardContext& context) const {
  if (!has_word_positions(config_)) return {};
  PRISM_CHECK(!word_starts_.empty(), "model",
              "expected a tokenizer, from which positions in words are found (rotary.word_dims); found none; add "
              "tokenizer.json to the model's folder.");
  auto opening_B = context.cache != nullptr ? context.cache->word_opening() : torch::Tensor();
  if (!opening_B.defined()) opening_B = context.word_opening_B;
  if (opening_B.defined()) opening_B = opening_B.to(tokens_BT.device());
  const auto starts_V = torch::from_blob(const_cast<uint8_t*>(word_starts_.data()), {config_.vocab_size}, torch::kBool);
  auto found_BT = word_positions(tokens_BT, starts_V.to(tokens_BT.device()), opening_B).to(device());
  if (context.cache != nullptr) context.cache->append_words(found_BT);
  return found_BT;
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
  context.word_positions_BT = find_word_positions(tokens_BT, context);
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
