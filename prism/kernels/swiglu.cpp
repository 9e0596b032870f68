#include "prism/kernels/swiglu.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

struct SwigluFunction : torch::autograd::Function<SwigluFunction> {
  static Variable forward(AutogradContext* context, const Variable& x_given) {
    RECORD_FUNCTION("prism::swiglu", {});
    const auto x = x_given.contiguous();
    context->save_for_backward({x});
    auto shape = x.sizes().vec();
    shape.back() /= 2;
    auto y = torch::empty(shape, x.options());
    rows::Swiglu work;
    work.type = row_type(x.scalar_type());
    work.width = shape.back();
    work.x = x.const_data_ptr();
    work.y = y.mutable_data_ptr();
    for_rows(found_again(row_kernels(x, x.scalar_type())).swiglu, work, y.numel() / work.width, work.width);
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::swiglu_backward", {});
    const auto x = context->get_saved_variables()[0];
    const auto d_y = gradients[0].contiguous();
    const auto d_x = torch::empty_like(x);
    rows::SwigluGradient work;
    work.type = row_type(x.scalar_type());
    work.width = d_y.size(-1);
    work.x = x.const_data_ptr();
    work.d_y = d_y.const_data_ptr();
    work.d_x = d_x.mutable_data_ptr();
    for_rows(found_again(row_kernels(x, x.scalar_type())).swiglu_gradient, work, d_y.numel() / work.width, work.width);
    return {d_x};
  }
};

}  // namespace

Tensor swiglu(const Tensor& x) {
  PRISM_CHECK(x.dim() >= 1 && x.size(-1) % 2 == 0, "swiglu",
              "expected [gate | up] of even width; found width {}; join gate and up of one width.", x.size(-1));
  if (x.numel() == 0 || row_kernels(x, x.scalar_type()) == nullptr) return swiglu_plain(x);
  return SwigluFunction::apply(x);
}

Tensor swiglu_plain(const Tensor& x) {
  const auto halves = x.chunk(2, -1);
  return torch::silu(halves[0]) * halves[1];
}

}  // namespace prism
