#include "prism/models/block.h"

namespace prism {

BlockImpl::BlockImpl(int64_t d_model, double norm_eps, const LayerConfig& config, size_t index,
                     std::shared_ptr<RotaryCache> rotary) {
  attention_norm = register_module("attention_norm", RmsNorm(d_model, norm_eps));
  attention = register_module("attention", Attention(d_model, norm_eps, config, index, std::move(rotary)));
  mlp_norm = register_module("mlp_norm", RmsNorm(d_model, norm_eps));
  mlp = register_module("mlp", Mlp(d_model, config.ffn));
}

Residual BlockImpl::forward(const Residual& residual, const ForwardContext& context, torch::ScalarType type) {
  const auto before = attention_norm(residual.stream_BTD, residual.branch_BTD, type);
  const auto between = mlp_norm(before.sum, attention(before.normed, context), type);
  return {between.sum, mlp(between.normed)};
}

}  // namespace prism
