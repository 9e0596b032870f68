#include "prism/layers/swiglu_mlp.h"

#include "prism/kernels/swiglu.h"

namespace prism {

SwigluMlp::SwigluMlp(int64_t d_model, const FfnConfig& config)
    : gate_up({.in = d_model, .out = {{{"gate_proj", "up_proj"}, config.width}}, .feed_forward = true}),
      down({.in = config.width, .out = {{{"down_proj"}, d_model}}, .into_stream = true, .feed_forward = true}) {}

torch::Tensor SwigluMlp::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden) const {
  const auto h = swiglu(gate_up(x));
  if (hidden != nullptr) hidden->push_back(h);
  return down(h);
}

void SwigluMlp::visit(WeightVisitor& v) const {
  v.module("gate_up", "", gate_up);
  v.module("down", "", down);
}

}  // namespace prism
