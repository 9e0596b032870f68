#include "prism/layers/gelu_mlp.h"

#include <ATen/ops/gelu.h>

namespace prism {

GeluMlp::GeluMlp(int64_t d_model, const FfnConfig& config)
    : up({.in = d_model, .out = {{{"up_proj"}, config.width}}, .bias = config.bias, .feed_forward = true}),
      down({.in = config.width,
            .out = {{{"down_proj"}, d_model}},
            .bias = config.bias,
            .into_stream = true,
            .feed_forward = true}) {}

torch::Tensor GeluMlp::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden, int64_t decoding) const {
  const auto h = at::gelu(up(x, decoding));
  if (hidden != nullptr) hidden->push_back(h);
  return down(h, decoding);
}

void GeluMlp::visit(WeightVisitor& v) const {
  v.module("up", "", up);
  v.module("down", "", down);
}

}  // namespace prism
