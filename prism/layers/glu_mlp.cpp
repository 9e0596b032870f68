#include "prism/layers/glu_mlp.h"

#include <ATen/Functions.h>

#include <string>
#include <utility>
#include <vector>

#include "prism/core/error.h"

namespace prism {
namespace {

/// The names of the projections of x that one product computes.
std::vector<std::string> names_of(GluKind kind, bool shares) {
  std::vector<std::string> names = {"gate_proj"};
  if (kind == GluKind::g2lu) names.emplace_back("inner_gate_proj");
  if (!shares) names.emplace_back("up_proj");
  return names;
}

}  // namespace

GluMlp::GluMlp(int64_t d_model, const FfnConfig& config, bool shares)
    : down({.in = config.width,
            .out = {{{"down_proj"}, d_model}},
            .bias = config.bias,
            .into_stream = true,
            .feed_forward = true}),
      kind_(config.kind == "g2lu" ? GluKind::g2lu : GluKind::swiglu) {
  gates = Linear(
      {.in = d_model, .out = {{names_of(kind_, shares), config.width}}, .bias = config.bias, .feed_forward = true});
  if (shares)
    up = Linear({.in = d_model, .out = {{{"up_proj"}, config.width}}, .bias = config.bias, .feed_forward = true});
  if (config.gate_bias) inner_bias = Weight({config.width}, 0.0);
}

torch::Tensor GluMlp::project(const torch::Tensor& x, int64_t decoding) const {
  if (!inner_bias) return gates(x, decoding);
  // The product adds a bias for all of its rows, which is 0 for the other projections.
  const auto& bias = inner_bias.tensor();
  const auto none = at::zeros_like(bias);
  const auto of_all = up ? at::cat({none, bias}) : at::cat({none, bias, none});
  return gates.weight.product(x, {.bias = of_all, .decoding = decoding});
}

torch::Tensor GluMlp::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden, int64_t decoding) const {
  const auto h = glu(kind_, project(x, decoding), up ? up(x, decoding) : torch::Tensor());
  if (hidden != nullptr) hidden->push_back(h);
  return down(h, decoding);
}

torch::Tensor GluMlp::gate(const torch::Tensor& x) const {
  const int64_t parts = gate_parts(kind_), width = down.weight.shape()[1];
  const auto gates_of = project(x).narrow(-1, 0, parts * width);
  return glu(kind_, gates_of.contiguous(),
             at::ones({1}, x.options()).expand_as(gates_of.narrow(-1, 0, width)).contiguous());
}

void GluMlp::visit(WeightVisitor& v) const {
  v.module(up ? "gates" : "gate_up", "", gates);
  v.module("up", "", up);
  v.module("down", "", down);
  if (inner_bias)
    v.weight("bias", inner_bias,
             {.role = WeightRole::bias,
              .rows = {{{"inner_gate_proj"}, inner_bias.shape()[0]}},
              .fan_in = gates.weight.shape()[1],
              .feed_forward = true});
}

WeightPair GluMlp::pair() {
  PRISM_ASSERT(up, "feed_forward", "a part that does not share asked for its pair");
  return {up.weight, down.weight};
}

}  // namespace prism
