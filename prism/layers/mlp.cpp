#include "prism/layers/mlp.h"

#include "prism/core/error.h"
#include "prism/kernels/swiglu.h"

namespace prism {

void check(const FfnConfig& config, size_t layer) {
  const bool gated = config.kind == "swiglu";
  PRISM_CHECK(gated || config.kind == "relu", "model",
              "layer {}: expected ffn.kind swiglu or relu; found \"{}\"; choose one of them.", layer, config.kind);
  PRISM_CHECK(config.width > 0, "model", "layer {}: expected ffn.width of at least 1; found {}; give model.ffn_width.",
              layer, config.width);
  PRISM_CHECK(config.depth >= 1 && (!gated || config.depth == 1), "model",
              "layer {}: expected ffn.depth of {}; found {}; change it{}.", layer,
              gated ? "1 for swiglu" : "at least 1", config.depth, gated ? ", or choose relu" : "");
  PRISM_CHECK(!gated || !config.bias, "model",
              "layer {}: expected no ffn.bias for swiglu; found one; leave it out, or choose relu.", layer);
}

MlpImpl::MlpImpl(int64_t d_model, const FfnConfig& config) {
  PRISM_ASSERT(config.kind == "swiglu" || config.kind == "relu", "mlp", "a feed-forward part of kind {}", config.kind);
  if (config.kind == "swiglu") gate_up = register_module("gate_up", Linear(d_model, 2 * config.width));
  for (int64_t i = 0; config.kind == "relu" && i < config.depth; ++i)
    inner.push_back(register_module(fmt::format("inner_{}", i),
                                    Linear(i == 0 ? d_model : config.width, config.width, config.bias)));
  down = register_module("down", Linear(config.width, d_model, config.bias));
}

torch::Tensor MlpImpl::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden) {
  torch::Tensor h = gate_up ? swiglu(gate_up(x)) : x;
  if (gate_up && hidden != nullptr) hidden->push_back(h);
  for (auto& layer : inner) {
    h = layer->forward_relu(h);
    if (hidden != nullptr) hidden->push_back(h);
  }
  return down(h);
}

}  // namespace prism
