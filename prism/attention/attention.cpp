#include "prism/attention/attention.h"

#include <ATen/Functions.h>

#include "prism/attention/prefill.h"
#include "prism/core/error.h"
#include "prism/kernels/rotary_pairs.h"
#include "prism/kernels/rotate.h"

namespace prism {
namespace {

TokenPositions places_of(const ForwardContext& context) {
  return {context.positions_BT, context.word_positions_BT, context.first_position};
}

/// The context of one sequence's rows in a step of the cache. @param first  the first of them in the flattened batch.
ForwardContext of_sequence(const ForwardContext& context, size_t index, int64_t first) {
  ForwardContext own = context;
  own.rows = {context.rows[index]};
  const int64_t tokens = own.rows[0].tokens;
  for (auto* tensor : {&own.positions_BT, &own.word_positions_BT})
    if (tensor->defined()) *tensor = tensor->flatten().narrow(0, first, tokens).unsqueeze(0);
  if (own.prompts_B.defined()) own.prompts_B = own.prompts_B.narrow(0, static_cast<int64_t>(index), 1);
  return own;
}

/// The same input with contiguous keys and values.
AttentionInput gathered(AttentionInput input) {
  const auto kv = gather_pages(input);
  const auto longest = input.kv_lengths_B.max().item<int64_t>();
  input.kv = {kv.k_BGSD.narrow(2, 0, longest), kv.v_BGSE.narrow(2, 0, longest), {}};
  return input;
}

}  // namespace

Attention::Attention(const AttentionOptions& options, const LayerConfig& config, size_t index,
                     std::shared_ptr<RotaryCache> rotary)
    : config_(config),
      is_causal_(options.is_causal),
      index_(index),
      pairs_(std::make_shared<RotaryPairs>(rotary_pairs(config.rotary, config.head_dim))),
      rotary_(std::move(rotary)) {
  PRISM_CHECK(config.heads > 0 && config.head_dim > 0 && config.kv_heads > 0 && config.heads % config.kv_heads == 0,
              "attention",
              "layer {}: expected kv_heads that divide heads; found {} heads of width {} with {} kv_heads; choose a "
              "divisor of heads.",
              index, config.heads, config.head_dim, config.kv_heads);
  PRISM_ASSERT(config.output_projection || !config.output_bias, "attention", "layer {}: a bias without a projection",
               index);
  const int64_t q_width = config.heads * config.head_dim, kv_width = config.kv_heads * config.head_dim;
  qkv = Linear({.in = options.d_model,
                .out = {{{"q_proj"}, q_width, config.heads},
                        {{"k_proj"}, kv_width, config.kv_heads},
                        {{"v_proj"}, kv_width, config.kv_heads}},
                .bias = config.qkv_bias});
  if (config.output_projection)
    out = Linear(
        {.in = q_width, .out = {{{"o_proj"}, options.d_model}}, .bias = config.output_bias, .into_stream = true});
  if (config.budget.is_on()) budget = HeadBudget(options.d_model, config, index, options.budgets);
  if (!config.qk_norm) return;
  const NormOptions norm{.width = config.head_dim, .eps = options.norm_eps, .role = WeightRole::head_gain};
  q_norm = Norm(norm);
  k_norm = Norm(norm);
}

void Attention::visit(WeightVisitor& v) const {
  v.module("qkv", "", qkv);
  v.module("out", "", out);
  v.module("budget", "budget", budget);
  v.module("q_norm", "q_norm", q_norm);
  v.module("k_norm", "k_norm", k_norm);
}

torch::Tensor Attention::norm_heads(const torch::Tensor& fused_BTF, Heads heads) const {
  const int64_t q_width = heads.queries * config_.head_dim, k_width = heads.groups * config_.head_dim;
  const auto parts = fused_BTF.split_with_sizes({q_width, k_width, k_width}, 2);
  const auto normed = [&](const torch::Tensor& part_BTF, const Norm& norm) {
    const auto split = part_BTF.unflatten(2, {-1, config_.head_dim}).to(norm.weight.tensor().scalar_type());
    return norm(split, torch::Tensor(), part_BTF.scalar_type()).normed.flatten(2);
  };
  return at::cat({normed(parts[0], q_norm), normed(parts[1], k_norm), parts[2]}, 2);
}

torch::Tensor Attention::prepare(const torch::Tensor& fused_BTF, Heads heads, const TokenPositions& places) const {
  auto normed_BTF = q_norm ? norm_heads(fused_BTF, heads) : fused_BTF;
  if (!config_.rotary.turns()) return normed_BTF;
  const auto table = rotary_->rows(config_.rotary, config_.head_dim, places, fused_BTF.size(1), fused_BTF.device());
  return rotate_heads(normed_BTF, table.cos, table.sin, heads.queries + heads.groups);
}

AttentionInput Attention::input_of(const torch::Tensor& fused_BTF, Heads heads) const {
  const auto parts = fused_BTF.unflatten(2, {heads.queries + 2 * heads.groups, config_.head_dim})
                         .split_with_sizes({heads.queries, heads.groups, heads.groups}, 2);
  AttentionInput input;
  input.q_BTHD = parts[0];
  input.kv = {parts[1].transpose(1, 2), parts[2].transpose(1, 2), {}};
  input.causality = is_causal_ ? Causality::causal : Causality::full;
  input.window = config_.window;
  return input;
}

torch::Tensor Attention::over_kept_heads(const torch::Tensor& x_BTD, const HeadWeights& chosen,
                                         const ForwardContext& context) const {
  const PackedHeads packed(chosen.kept_BH, config_);
  const Heads heads{config_.heads / config_.kv_heads, 1};
  auto places = places_of(context);
  for (auto* tensor : {&places.positions_BT, &places.word_positions_BT}) *tensor = packed.of_sequences(*tensor);
  const auto& panels = panels_.of(qkv, out, config_, x_BTD.scalar_type());
  const auto fused_PTF = prepare(packed.project(x_BTD, panels), heads, places);
  auto input = input_of(fused_PTF, heads);
  if (context.cache != nullptr) append_to_cache(input, context);
  input.documents_BS = packed.of_sequences(context.documents_BT);
  input.q_lengths_B = input.kv_lengths_B = packed.of_sequences(context.lengths_B);
  input.head_weights_BH = packed.of_heads(chosen.weight_BH * chosen.kept_BH);
  return packed.join(attend(input, context.backend).out_BTHE, panels);
}

void Attention::append_to_cache(AttentionInput& input, const ForwardContext& context) const {
  input.kv = context.cache->append_kept(index_, context.rows[0].sequence, input.kv.k_BGSD, input.kv.v_BGSE);
}

torch::Tensor Attention::projected(const torch::Tensor& out_BTF, const ForwardContext& context) const {
  return out ? out(out_BTF, context.decoding_rows()) : out_BTF;
}

torch::Tensor Attention::over_sequences(const torch::Tensor& x_BTD, const ForwardContext& context) const {
  KvCache& cache = *context.cache;
  const Heads heads{config_.heads, config_.kv_heads};
  const auto fused_BTF = prepare(qkv(x_BTD, context.decoding_rows()), heads, places_of(context));
  const int64_t width = config_.head_dim, row = fused_BTF.size(2), rows = fused_BTF.numel() / row;
  cache.append(index_, fused_BTF.as_strided({rows, 2 * heads.groups, width}, {row, width, 1},
                                            fused_BTF.storage_offset() + heads.queries * width));
  std::vector<torch::Tensor> outputs;
  for (const auto& group : cache.groups()) {
    AttentionInput input;
    input.q_BTHD =
        fused_BTF.as_strided({group.sequences, group.tokens, heads.queries, width}, {group.tokens * row, row, width, 1},
                             fused_BTF.storage_offset() + group.first_row * row);
    input.kv = cache.pages(index_, group);
    input.kv_lengths_B = group.kv_lengths_B;
    input.window = config_.window;
    input.decodes = group.first.decodes;
    if (context.probe != nullptr) context.probe->observe_attention(index_, gathered(input));
    const bool selects = context.prefill != nullptr && !group.first.decodes;
    const auto output =
        selects ? context.prefill->attend(index_, input, *pairs_, cache.selector_state(index_, group.first.sequence),
                                          group.first.prompt_length, context.backend)
                : attend(input, context.backend);
    outputs.push_back(output.out_BTHE.reshape({group.sequences * group.tokens, heads.queries * width}));
  }
  const auto out_NF = outputs.size() == 1 ? outputs[0] : at::cat(outputs);
  return projected(out_NF.view({x_BTD.size(0), x_BTD.size(1), -1}), context);
}

torch::Tensor Attention::each_sequence(const torch::Tensor& x_BTD, const ForwardContext& context) const {
  const auto x_ND = x_BTD.flatten(0, 1);
  std::vector<torch::Tensor> outputs;
  int64_t first = 0;
  for (size_t i = 0; i < context.rows.size(); ++i) {
    const int64_t tokens = context.rows[i].tokens;
    outputs.push_back(over_rows(x_ND.narrow(0, first, tokens).unsqueeze(0), of_sequence(context, i, first))[0]);
    first += tokens;
  }
  return outputs.size() == 1 ? outputs[0].unsqueeze(0) : at::cat(outputs).unflatten(0, {x_BTD.size(0), x_BTD.size(1)});
}

torch::Tensor Attention::over_rows(const torch::Tensor& x_BTD, const ForwardContext& context) const {
  const auto chosen = budget ? budget(x_BTD, context, context.budget_tau) : HeadWeights();
  // A probe observes all heads, kept or not.
  if (chosen.kept_BH.defined() && out && context.probe == nullptr && !at::GradMode::is_enabled())
    return over_kept_heads(x_BTD, chosen, context);

  const Heads heads{config_.heads, config_.kv_heads};
  auto input = input_of(prepare(qkv(x_BTD), heads, places_of(context)), heads);
  if (context.cache != nullptr) append_to_cache(input, context);
  input.documents_BS = context.documents_BT;
  input.q_lengths_B = input.kv_lengths_B = context.lengths_B;
  if (context.probe != nullptr) context.probe->observe_attention(index_, input);
  input.kept_heads_BH = chosen.kept_BH;
  // With gradients, w is differentiated. A layer that is recomputed runs first without them, and must give the same
  // bits (models/recompute.h).
  const bool differentiable =
      chosen.weight_BH.defined() && (at::GradMode::is_enabled() || context.auxiliary != nullptr);
  if (!differentiable) input.head_weights_BH = chosen.weight_BH;
  std::unique_ptr<SelectorState> of_call;
  auto out_BTHE = (context.prefill == nullptr
                       ? attend(input, context.backend)
                       : context.prefill->attend(index_, input, *pairs_, of_call, /*prompt_length=*/0, context.backend))
                      .out_BTHE;
  if (differentiable) {
    const auto weight = chosen.weight_BH.view({x_BTD.size(0), 1, config_.heads, 1});
    out_BTHE = out_BTHE * weight.to(out_BTHE.scalar_type());
  }
  return projected(out_BTHE.flatten(2), context);
}

torch::Tensor Attention::operator()(const torch::Tensor& x_BTD, const ForwardContext& context) const {
  if (context.cache == nullptr) return over_rows(x_BTD, context);
  PRISM_CHECK(is_causal_, "attention", "expected causal attention with a cache; found full; leave out the cache.");
  PRISM_CHECK(
      !context.documents_BT.defined() && !context.lengths_B.defined(), "attention",
      "expected rows of one document without padding with a cache; found documents or lengths; leave out the cache.");
  return budget ? each_sequence(x_BTD, context) : over_sequences(x_BTD, context);
}

}  // namespace prism
