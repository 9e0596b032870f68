#include "prism/models/block.h"

#include <ATen/Functions.h>

#include <utility>

namespace prism {

NormedSum normed(const Norm& norm, const Residual& residual, torch::ScalarType type) {
  if (norm) return norm(residual.stream_BTD, residual.branch_BTD, type);
  if (residual.cast_BTD.defined()) return {residual.stream_BTD, residual.cast_BTD};
  const auto sum = residual.branch_BTD.defined() ? residual.stream_BTD + residual.branch_BTD : residual.stream_BTD;
  return {sum, sum.to(type)};
}

namespace {

/// The rows [N, D] of x [B, T, D] that are not padding. @param lengths_B  undefined: all.
torch::Tensor tokens_of(const torch::Tensor& x_BTD, const torch::Tensor& lengths_B) {
  if (!lengths_B.defined()) return x_BTD.flatten(0, 1);
  const auto place_T = at::arange(x_BTD.size(1), lengths_B.options());
  return x_BTD.index({place_T.unsqueeze(0) < lengths_B.unsqueeze(1)});
}

}  // namespace

Block::Block(const ModelConfig& model, size_t index, std::shared_ptr<RotaryCache> rotary)
    : attention({.d_model = model.d_model,
                 .norm_eps = model.norm_eps,
                 .is_causal = model.attention == "causal",
                 .budgets = layers_with_budgets(model)},
                model.layers[index], index, std::move(rotary)),
      mlp(make_feed_forward(model.d_model, model.layers[index].ffn, shares_pair(model.layers, index))),
      index_(index),
      is_post_(model.layers[index].norm_place == "post") {
  const auto& layer = model.layers[index];
  if (layer.norm == "none") return;
  const NormOptions options{
      .width = model.d_model, .eps = model.norm_eps, .kind = norm_kind(layer.norm), .is_post = is_post_};
  attention_norm = Norm(options);
  mlp_norm = Norm(options);
}

void Block::visit(WeightVisitor& v) const {
  v.module("attention_norm", is_post_ ? "post_attention_layernorm" : "input_layernorm", attention_norm);
  v.module("attention", "self_attn", attention);
  v.module("mlp_norm", is_post_ ? "post_feedforward_layernorm" : "post_attention_layernorm", mlp_norm);
  v.module("mlp", "mlp", *mlp);
}

Residual Block::forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const {
  const auto before = normed(is_post_ ? Norm() : attention_norm, residual, type);
  if (context.probe != nullptr) context.probe->observe_residual(index_, before.stream);
  const auto attended = attention(before.normed, context);
  const auto between = normed(is_post_ ? attention_norm : mlp_norm, {before.stream, attended}, type);
  std::vector<torch::Tensor> hidden_BTF;
  Residual after{between.stream, mlp->forward(between.normed, context.probe != nullptr ? &hidden_BTF : nullptr,
                                              context.decoding_rows())};
  if (context.probe != nullptr) {
    context.probe->observe_hidden(index_, hidden_BTF);
    context.probe->observe_feed_forward(index_, tokens_of(between.normed, context.lengths_B),
                                        tokens_of(after.branch_BTD, context.lengths_B));
  }
  if (!is_post_) return after;
  const auto last = normed(mlp_norm, after, type);
  return {last.stream, {}, last.normed.is_same(last.stream) ? torch::Tensor() : last.normed};
}

}  // namespace prism
