#include "prism/layers/relu_mlp.h"

#include <fmt/format.h>

namespace prism {

ReluMlp::ReluMlp(int64_t d_model, const FfnConfig& config)
    : down({.in = config.width,
            .out = {{{"down_proj"}, d_model}},
            .bias = config.bias,
            .into_stream = true,
            .feed_forward = true}) {
  for (int64_t i = 0; i < config.depth; ++i)
    inner.emplace_back(LinearOptions{.in = i == 0 ? d_model : config.width,
                                     .out = {{{i == 0 ? "up_proj" : fmt::format("hidden_proj_{}", i)}, config.width}},
                                     .bias = config.bias,
                                     .feed_forward = true});
}

torch::Tensor ReluMlp::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden, int64_t decoding) const {
  torch::Tensor h = x;
  for (const auto& layer : inner) {
    h = layer.relu(h, decoding);
    if (hidden != nullptr) hidden->push_back(h);
  }
  return down(h, decoding);
}

void ReluMlp::visit(WeightVisitor& v) const {
  for (size_t i = 0; i < inner.size(); ++i) v.module(fmt::format("inner_{}", i), "", inner[i]);
  v.module("down", "", down);
}

}  // namespace prism
