#include "prism/models/trunk.h"

#include <ATen/Functions.h>
#include <ATen/core/LegacyTypeDispatch.h>

#include <algorithm>
#include <optional>
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

torch::Tensor Trunk::embed(const torch::Tensor& tokens_BT, const ForwardContext& context) const {
  auto stream_BTD = embedding(tokens_BT.to(device()));
  if (!positions && !config_.sinusoidal_positions) return stream_BTD;
  if (!positions && (!sinusoids_TD_.defined() || sinusoids_TD_.device() != stream_BTD.device() ||
                     sinusoids_TD_.scalar_type() != stream_BTD.scalar_type()))
    sinusoids_TD_ = sinusoidal_positions(config_.context, config_.d_model).to(stream_BTD.options());
  const auto& table_TD = positions ? positions.weight.tensor() : sinusoids_TD_;
  if (!context.positions_BT.defined())
    return stream_BTD + table_TD.narrow(0, context.first_position, tokens_BT.size(1));
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
  const auto starts_V =
      torch::from_blob(const_cast<uint8_t*>(word_starts_.data()), {config_.vocab_size}, torch::kBool).to(device());
  const auto tokens = tokens_BT.to(device());
  const auto& opening_B = context.word_opening_B;
  if (context.cache == nullptr) return word_positions(tokens, starts_V, opening_B);
  std::vector<torch::Tensor> found;  // of each sequence, [1, its tokens]
  int64_t first = 0;
  for (size_t i = 0; i < context.rows.size(); ++i) {
    const auto& [sequence, count, decodes, prompt_length, draw] = context.rows[i];
    const int64_t own = context.cache->word_opening(sequence);
    const auto opening = own >= 0              ? at::full({1}, own, tokens.options())
                         : opening_B.defined() ? opening_B.narrow(0, static_cast<int64_t>(i), 1)
                                               : opening_B;
    found.push_back(word_positions(tokens.flatten().narrow(0, first, count).unsqueeze(0), starts_V, opening));
    first += count;
  }
  const auto found_N = at::cat(found, 1)[0];
  context.cache->append_words(found_N);
  return found_N.view(tokens_BT.sizes());
}

void Trunk::begin_step(ForwardContext& context, const torch::Tensor& tokens_BT) const {
  KvCache& cache = *context.cache;
  if (context.rows.empty())
    for (int64_t b = 0; b < tokens_BT.size(0); ++b)
      context.rows.push_back({.sequence = b, .tokens = tokens_BT.size(1)});
  std::vector<int64_t> places;
  bool is_even = true;  // all sequences begin at the same position
  for (const auto& rows : context.rows) {
    const int64_t past = cache.length(rows.sequence);
    check_positions(past + rows.tokens);
    is_even = is_even && past == cache.length(context.rows[0].sequence);
    for (int64_t i = 0; i < rows.tokens; ++i) places.push_back(past + i);
  }
  PRISM_ASSERT(std::ssize(places) == tokens_BT.numel(), "model", "{} tokens for {} rows", tokens_BT.numel(),
               places.size());
  context.first_position = places.empty() ? 0 : places[0];
  const bool is_batch = std::ssize(context.rows) == tokens_BT.size(0);  // each row of the batch is a sequence
  if (!(is_even && is_batch) && !context.positions_BT.defined())
    context.positions_BT = torch::tensor(places, torch::kLong).view(tokens_BT.sizes()).to(device());
  cache.begin(context.rows);
}

void Trunk::check_positions(int64_t count) const {
  PRISM_CHECK(count <= config_.context, "model",
              "expected at most {} positions, the model's context; found {}; shorten the input.", config_.context,
              count);
}

torch::Tensor Trunk::forward(const torch::Tensor& tokens_BT, const ForwardContext& given) const {
  // Without gradients nothing needs to know which tensors are views.
  std::optional<at::AutoDispatchBelowADInplaceOrView> below_autograd;
  if (!torch::GradMode::is_enabled()) below_autograd.emplace();
  const auto [lowest, highest] = tokens_BT.aminmax();
  PRISM_CHECK(lowest.item<int64_t>() >= 0 && highest.item<int64_t>() < config_.vocab_size, "model",
              "expected token ids from 0 to {}; found {} to {}; use the tokenizer that belongs to this model.",
              config_.vocab_size - 1, lowest.item<int64_t>(), highest.item<int64_t>());
  ForwardContext context = on_device(given, device());
  context.budget_tau = config_.budget_tau;
  if (context.cache != nullptr) {
    begin_step(context, tokens_BT);
  } else {
    check_positions(tokens_BT.size(1));
  }
  context.word_positions_BT = find_word_positions(tokens_BT, context);
  Residual residual{embed(tokens_BT, context), {}};
  const bool recomputes = recomputes_ && torch::GradMode::is_enabled();
  for (const auto& block : blocks)
    residual = recomputes ? recomputed(block, residual, context, compute_type_)
                          : block->forward(residual, context, compute_type_);
  if (context.cache != nullptr) context.cache->end();
  const auto last = normed(norm, residual, compute_type_);
  if (context.probe != nullptr) context.probe->observe_residual(blocks.size(), last.stream);
  return last.normed;
}

}  // namespace prism
