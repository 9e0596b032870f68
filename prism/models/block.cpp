#include "prism/models/block.h"

namespace prism {

NormedSum normed(RmsNorm& norm, const Residual& residual, torch::ScalarType type) {
  if (norm) return norm(residual.stream_BTD, residual.branch_BTD, type);
  const auto sum = residual.branch_BTD.defined() ? residual.stream_BTD + residual.branch_BTD : residual.stream_BTD;
  return {sum, sum.to(type)};
}

BlockImpl::BlockImpl(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
                     std::shared_ptr<RotaryCache> rotary)
    : index_(index) {
  const bool has_norms = config.norm != "none";
  if (has_norms) attention_norm = register_module("attention_norm", RmsNorm(d_model, norm_eps));
  attention = register_module("attention", Attention(d_model, norm_eps, config, index, std::move(rotary)));
  if (has_norms) mlp_norm = register_module("mlp_norm", RmsNorm(d_model, norm_eps));
  mlp = register_module("mlp", Mlp(d_model, config.ffn));
}

Residual BlockImpl::forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) {
  const auto before = normed(attention_norm, residual, type);
  if (context.probe != nullptr) context.probe->observe_residual(index_, before.sum);
  const auto between = normed(mlp_norm, {before.sum, attention(before.normed, context)}, type);
  if (context.probe == nullptr) return {between.sum, mlp(between.normed)};
  std::vector<torch::Tensor> hidden_BTF;
  const Residual after{between.sum, mlp->forward(between.normed, &hidden_BTF)};
  context.probe->observe_hidden(index_, hidden_BTF);
  return after;
}

}  // namespace prism
