#include "prism/kernels/linear.h"

#include <ATen/Functions.h>
#include <ATen/record_function.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "prism/kernels/matmul.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Rows whose bias gradients are summed into one partial sum. The order of summation is thus independent of the number
/// of threads.
constexpr int64_t kRowsPerSum = 64;

Tensor as_rows(const Tensor& x) {
  return x.reshape({-1, x.size(-1)});
}

/// f(x b + bias) along the last axis of x.
Tensor apply_matrix(const Tensor& x, const Tensor& b, const Tensor& bias = {}, bool relu = false) {
  auto sizes = x.sizes().vec();
  sizes.back() = b.size(1);
  Tensor y = at::empty(sizes, x.options());  // autograd does not allow returning a view of the product
  matmul_into(as_rows(y), as_rows(x), b, bias, relu);
  return y;
}

/// The gradient of the product, and its sum over the rows, the gradient of the bias.
///
/// @param y  the output of max(0, .); undefined without relu.
std::pair<Tensor, Tensor> back_to_product(const Tensor& dy, const Tensor& y, bool with_bias,
                                          torch::ScalarType bias_type) {
  const auto* kernels = row_kernels(dy, dy.scalar_type());
  if (kernels == nullptr || dy.numel() == 0) {
    const auto d_product = y.defined() ? at::threshold_backward(dy, y, 0) : dy;
    return {d_product, with_bias ? as_rows(d_product).sum(0, false, bias_type) : Tensor()};
  }
  const auto given = dy.contiguous();
  const int64_t width = given.size(-1), rows = given.numel() / width;
  const int64_t blocks = (rows + kRowsPerSum - 1) / kRowsPerSum;
  const auto d_product = y.defined() ? at::empty_like(given) : given;
  const auto sums = with_bias ? at::zeros({blocks, width}, dy.options().dtype(torch::kFloat)) : Tensor();
  rows::ReluGradient relu;
  rows::ColumnSums add;
  relu.type = add.type = row_type(dy.scalar_type());
  relu.width = add.width = add.stride = width;
  relu.d_y = given.const_data_ptr();
  relu.y = y.defined() ? y.const_data_ptr() : nullptr;
  relu.d_x = y.defined() ? d_product.mutable_data_ptr() : nullptr;
  add.x = d_product.const_data_ptr();
  at::parallel_for(0, blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      const int64_t row = block * kRowsPerSum, end = std::min(rows, row + kRowsPerSum);
      if (y.defined()) kernels->relu_gradient(relu, row, end);
      if (!with_bias) continue;
      auto share = add;
      share.sums = sums.mutable_data_ptr<float>() + block * width;
      kernels->add(share, row, end);
    }
  });
  return {d_product, with_bias ? sums.sum(0).to(bias_type) : Tensor()};
}

struct LinearFunction : torch::autograd::Function<LinearFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const Variable& weight, const Tensor& cast,
                          const std::optional<Variable>& bias, bool relu) {
    RECORD_FUNCTION("prism::linear", {});
    auto y = apply_matrix(x, cast.t(), bias.value_or(Tensor()), relu);
    context->save_for_backward({x, cast, relu ? y : Variable()});
    context->saved_data["type"] = static_cast<int64_t>(weight.scalar_type());
    context->saved_data["has_bias"] = bias.has_value();
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::linear_backward", {});
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &cast = saved[1], &y = saved[2];
    const auto type = static_cast<torch::ScalarType>(context->saved_data["type"].toInt());
    const bool has_bias = context->saved_data["has_bias"].toBool();
    Tensor dy = gradients[0], dx, dweight, dbias;
    if (has_bias || y.defined()) std::tie(dy, dbias) = back_to_product(dy, y, has_bias, type);
    if (context->needs_input_grad(0)) dx = apply_matrix(dy, cast);
    if (context->needs_input_grad(1)) dweight = matmul(as_rows(dy).t(), as_rows(x), type);
    return {dx, dweight, Variable(), dbias, Variable()};
  }
};

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& cast, const Tensor& bias, bool relu) {
  return LinearFunction::apply(x, weight, cast, bias.defined() ? std::optional(bias) : std::nullopt, relu);
}

}  // namespace prism
