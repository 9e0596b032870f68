#include "prism/layers/glu_mlp.h"

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
    : down({.in = config.width, .out = {{{"down_proj"}, d_model}}, .into_stream = true, .feed_forward = true}),
      kind_(config.kind == "g2lu" ? GluKind::g2lu : GluKind::swiglu) {
  gates = Linear({.in = d_model, .out = {{names_of(kind_, shares), config.width}}, .feed_forward = true});
  if (shares) up = Linear({.in = d_model, .out = {{{"up_proj"}, config.width}}, .feed_forward = true});
}

torch::Tensor GluMlp::forward(const torch::Tensor& x, std::vector<torch::Tensor>* hidden) const {
  const auto h = glu(kind_, gates(x), up ? up(x) : torch::Tensor());
  if (hidden != nullptr) hidden->push_back(h);
  return down(h);
}

void GluMlp::visit(WeightVisitor& v) const {
  v.module(up ? "gates" : "gate_up", "", gates);
  v.module("up", "", up);
  v.module("down", "", down);
}

WeightPair GluMlp::pair() {
  PRISM_ASSERT(up, "feed_forward", "a part that does not share asked for its pair");
  return {up.weight, down.weight};
}

}  // namespace prism
