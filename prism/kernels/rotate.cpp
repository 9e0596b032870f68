// One pass over fused QKV, in place. The backward pass is the same loop with negated angles.
#include "prism/kernels/rotate.h"

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

/// @param direction  1: forward; -1: the inverse (transposed) rotation, for gradients.
void rotate_into(const Tensor& in, const Tensor& out, const Tensor& cos, const Tensor& sin, int64_t rotated,
                 float direction) {
  rows::Rotation work;
  work.type = row_type(in.scalar_type());
  work.head_dim = 2 * cos.size(-1);
  work.heads = in.size(2) / work.head_dim;
  work.rotated = rotated;
  work.positions = cos.numel() / cos.size(-1);
  work.direction = direction;
  work.cos = cos.const_data_ptr<float>();
  work.sin = sin.const_data_ptr<float>();
  work.in = in.const_data_ptr();
  work.out = out.mutable_data_ptr();
  for_rows(found_again(row_kernels(in, in.scalar_type())).rotate, work, in.size(0) * in.size(1), in.size(2));
}

/// x turned, in place unless autograd needs its value.
Tensor turn_heads(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated) {
  RECORD_FUNCTION("prism::rotate_heads", {});
  // A leaf that requires gradients must keep its value. Any other tensor is an intermediate that may be overwritten.
  const auto y = x.is_leaf() && x.requires_grad() ? at::empty_like(x) : x;
  rotate_into(x, y, cos, sin, rotated, 1.0f);
  return y;
}

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const Tensor& cos, const Tensor& sin,
                          int64_t rotated) {
    context->saved_data["rotated"] = rotated;
    context->save_for_backward({cos, sin});
    auto y = turn_heads(x, cos, sin, rotated);
    if (y.is_same(x)) context->mark_dirty({x});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    RECORD_FUNCTION("prism::rotate_heads_backward", {});
    const auto saved = context->get_saved_variables();
    const auto dy = gradients[0].contiguous();
    auto dx = torch::empty_like(dy);
    rotate_into(dy, dx, saved[0], saved[1], context->saved_data["rotated"].toInt(), -1.0f);
    return {dx, Variable(), Variable(), Variable()};
  }
};

/// @return number of heads of a position. @throws InputError for inconsistent shapes.
int64_t check(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated) {
  PRISM_CHECK(cos.dim() >= 2 && cos.sizes() == sin.sizes() && cos.scalar_type() == torch::kFloat &&
                  cos.is_contiguous() && sin.is_contiguous(),
              "rotate_heads",
              "expected two float32 tables of one shape, [T, D/2] or [B, T, D/2]; found {} and {}; pass cosines and "
              "sines of the same angles.",
              c10::str(cos.sizes()), c10::str(sin.sizes()));
  const int64_t width = 2 * cos.size(-1);
  PRISM_CHECK(x.dim() == 3 && x.size(2) % width == 0 && rotated <= x.size(2) / width, "rotate_heads",
              "expected [B, T, N D] with heads of D = {} and at least {} of them to rotate; found {}; reshape it to "
              "whole heads.",
              width, rotated, c10::str(x.sizes()));
  const int64_t rows = cos.dim() == 3 ? x.size(0) * x.size(1) : x.size(1);
  PRISM_CHECK(cos.numel() / cos.size(-1) == rows, "rotate_heads",
              "expected tables for {} positions; found {}; make them for all positions.", rows,
              cos.numel() / cos.size(-1));
  return x.size(2) / width;
}

}  // namespace

Tensor rotate_heads(const Tensor& x_BTF, const Tensor& cos, const Tensor& sin, int64_t rotated_heads) {
  check(x_BTF, cos, sin, rotated_heads);
  if (row_kernels(x_BTF, x_BTF.scalar_type()) == nullptr) return rotate_heads_plain(x_BTF, cos, sin, rotated_heads);
  const auto x = x_BTF.contiguous();
  return is_recorded({&x}) ? Tensor(RotateFunction::apply(x, cos, sin, rotated_heads))
                           : turn_heads(x, cos, sin, rotated_heads);
}

Tensor rotate_heads_plain(const Tensor& x_BTF, const Tensor& cos, const Tensor& sin, int64_t rotated_heads) {
  const int64_t heads = check(x_BTF, cos, sin, rotated_heads);
  const auto x_BTND = x_BTF.unflatten(2, {heads, -1});
  const auto wide = x_BTF.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto halves = x_BTND.narrow(2, 0, rotated_heads).to(wide).chunk(2, -1);
  const auto c = cos.to(wide).unsqueeze(-2), s = sin.to(wide).unsqueeze(-2);
  const auto turned =
      torch::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1).to(x_BTF.scalar_type());
  return torch::cat({turned, x_BTND.narrow(2, rotated_heads, heads - rotated_heads)}, 2).flatten(2);
}

}  // namespace prism
