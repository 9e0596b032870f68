#include "prism/kernels/swiglu.h"

#include <ATen/Functions.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static Variable forward(AutogradContext* context, const Variable& x) {
    context->save_for_backward({x});
    const auto halves = x.chunk(2, -1);
    return at::silu(halves[0]).mul_(halves[1]);
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto x = context->get_saved_variables()[0];
    const auto& dy = gradients[0];
    const auto halves = x.chunk(2, -1);
    auto dx = torch::empty_like(x);
    auto dx_halves = dx.chunk(2, -1);
    at::silu_backward_out(dx_halves[0], dy * halves[1], halves[0]);
    at::mul_out(dx_halves[1], dy, at::silu(halves[0]));
    return {dx};
  }
};

}  // namespace

Tensor swiglu(const Tensor& x) {
  PRISM_CHECK(x.dim() >= 1 && x.size(-1) % 2 == 0, "swiglu", "expected [gate | up] of even width; found width {}.",
              x.size(-1));
  return SwigluFunction::apply(x);
}

Tensor swiglu_plain(const Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

}  // namespace prism
