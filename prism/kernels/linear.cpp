#include "prism/kernels/linear.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/kernels/matmul.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

Tensor as_rows(const Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

/// x b along the last axis of x.
Tensor apply_matrix(const Tensor& x, const Tensor& b) {
  auto sizes = x.sizes().vec();
  sizes.back() = b.size(1);
  Tensor y = at::empty(sizes, x.options());  // autograd wants no view of the product
  matmul_into(as_rows(y), as_rows(x), b);
  return y;
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight, const Tensor& cast) {
    RECORD_FUNCTION("prism::linear", {});
    context->save_for_backward({x, cast});
    context->saved_data["type"] = static_cast<int64_t>(weight.scalar_type());
    return apply_matrix(x, cast.t());
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::linear_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &cast = saved[1];
    const auto& dy = gradients[0];
    Tensor dx, dweight;
    if (context->needs_input_grad(0)) dx = apply_matrix(dy, cast);
    if (context->needs_input_grad(1)) {
      const auto type = static_cast<torch::ScalarType>(context->saved_data["type"].toInt());
      dweight = matmul(as_rows(dy).t(), as_rows(x), type);
    }
    return {dx, dweight, Variable()};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& cast) {
  return LinearFunction::apply(x, weight, cast);
}

}  // namespace prism
