#include "prism/layers/mlp.h"

#include "prism/core/error.h"
#include "prism/kernels/swiglu.h"

namespace prism {

MlpImpl::MlpImpl(int64_t d_model, const FfnConfig& config) {
  PRISM_CHECK(config.kind == "swiglu" && config.width > 0, "mlp",
              "expected ffn.kind swiglu of a width of at least 1; found \"{}\" of width {}; change it.", config.kind,
              config.width);
  gate_up = register_module("gate_up", Linear(d_model, 2 * config.width));
  down = register_module("down", Linear(config.width, d_model));
}

torch::Tensor MlpImpl::forward(const torch::Tensor& x) {
  return down(swiglu(gate_up(x)));
}

}  // namespace prism
