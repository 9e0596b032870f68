#include "prism/models/block.h"

#include <utility>

namespace prism {

NormedSum normed(const RmsNorm& norm, const Residual& residual, torch::ScalarType type) {
  if (norm) return norm(residual.stream_BTD, residual.branch_BTD, type);
  const auto sum = residual.branch_BTD.defined() ? residual.stream_BTD + residual.branch_BTD : residual.stream_BTD;
  return {sum, sum.to(type)};
}

Block::Block(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
             std::shared_ptr<RotaryCache> rotary)
    : attention(d_model, norm_eps, config, index, std::move(rotary)),
      mlp(make_feed_forward(d_model, config.ffn)),
      index_(index) {
  if (config.norm == "none") return;
  attention_norm = RmsNorm(d_model, norm_eps);
  mlp_norm = RmsNorm(d_model, norm_eps);
}

void Block::visit(WeightVisitor& v) const {
  v.module("attention_norm", "input_layernorm", attention_norm);
  v.module("attention", "self_attn", attention);
  v.module("mlp_norm", "post_attention_layernorm", mlp_norm);
  v.module("mlp", "mlp", *mlp);
}

Residual Block::forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) const {
  const auto before = normed(attention_norm, residual, type);
  if (context.probe != nullptr) context.probe->observe_residual(index_, before.sum);
  const auto between = normed(mlp_norm, {before.sum, attention(before.normed, context)}, type);
  if (context.probe == nullptr) return {between.sum, mlp->forward(between.normed)};
  std::vector<torch::Tensor> hidden_BTF;
  const Residual after{between.sum, mlp->forward(between.normed, &hidden_BTF)};
  context.probe->observe_hidden(index_, hidden_BTF);
  return after;
}

}  // namespace prism
