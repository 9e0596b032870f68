// v1: one pass over fused QKV, in place; the backward pass is the same loop with the angle turned round.
#include "prism/kernels/rotate.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

constexpr const char* kOperation = "rotate_heads";

struct Shape {
  int64_t positions, heads, rotated, width, table_positions;
};

template <class T, class Wide>
void rotate_rows(const T* in, T* out, const float* cos, const float* sin, float direction, const Shape& shape,
                 int64_t first, int64_t last) {
  const int64_t half = shape.width / 2;
  for (int64_t row = first; row < last; ++row) {
    const float* c = cos + row % shape.table_positions * half;
    const float* s = sin + row % shape.table_positions * half;
    for (int64_t head = 0; head < shape.rotated; ++head) {
      const int64_t at = (row * shape.heads + head) * shape.width;
      for (int64_t j = 0; j < half; ++j) {
        const Wide a = static_cast<Wide>(in[at + j]), b = static_cast<Wide>(in[at + j + half]);
        const Wide cosine = c[j], sine = direction * s[j];
        out[at + j] = static_cast<T>(a * cosine - b * sine);
        out[at + j + half] = static_cast<T>(b * cosine + a * sine);
      }
    }
    if (in == out) continue;
    const int64_t rest = (row * shape.heads + shape.rotated) * shape.width;
    std::copy_n(in + rest, (shape.heads - shape.rotated) * shape.width, out + rest);
  }
}

/// @param direction  1 forward, -1 to undo (the transposed rotation, which the gradient needs).
void rotate_into(const Tensor& in, const Tensor& out, const Tensor& cos, const Tensor& sin, int64_t rotated,
                 float direction) {
  const int64_t width = 2 * cos.size(-1);
  const Shape shape{in.size(0) * in.size(1), in.size(2) / width, rotated, width, cos.numel() / cos.size(-1)};
  at::parallel_for(0, shape.positions, 16, [&](int64_t first, int64_t last) {
    const float *c = cos.const_data_ptr<float>(), *s = sin.const_data_ptr<float>();
    if (in.scalar_type() == torch::kBFloat16) {
      rotate_rows<at::BFloat16, float>(in.const_data_ptr<at::BFloat16>(), out.mutable_data_ptr<at::BFloat16>(), c, s,
                                       direction, shape, first, last);
    } else if (in.scalar_type() == torch::kFloat) {
      rotate_rows<float, float>(in.const_data_ptr<float>(), out.mutable_data_ptr<float>(), c, s, direction, shape,
                                first, last);
    } else {
      rotate_rows<double, double>(in.const_data_ptr<double>(), out.mutable_data_ptr<double>(), c, s, direction, shape,
                                  first, last);
    }
  });
}

struct RotateFunction : torch::autograd::Function<RotateFunction> {
  static Variable forward(AutogradContext* context, const Variable& x, const Tensor& cos, const Tensor& sin,
                          int64_t rotated) {
    context->saved_data["rotated"] = rotated;
    context->save_for_backward({cos, sin});
    // A leaf that needs gradients must keep its value; anything else is an intermediate of our own.
    if (x.is_leaf() && x.requires_grad()) {
      auto y = torch::empty_like(x);
      rotate_into(x, y, cos, sin, rotated, 1.0f);
      return y;
    }
    rotate_into(x, x, cos, sin, rotated, 1.0f);
    context->mark_dirty({x});
    return x;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto dy = gradients[0].contiguous();
    auto dx = torch::empty_like(dy);
    rotate_into(dy, dx, saved[0], saved[1], context->saved_data["rotated"].toInt(), -1.0f);
    return {dx, Variable(), Variable(), Variable()};
  }
};

/// @return heads of a position. @throws InputError where the shapes contradict each other.
int64_t check(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated) {
  PRISM_CHECK(cos.dim() >= 2 && cos.sizes() == sin.sizes() && cos.scalar_type() == torch::kFloat &&
                  cos.is_contiguous() && sin.is_contiguous(),
              kOperation, "expected two float32 tables of one shape, [T, D/2] or [B, T, D/2]; found {} and {}.",
              c10::str(cos.sizes()), c10::str(sin.sizes()));
  const int64_t width = 2 * cos.size(-1);
  PRISM_CHECK(x.dim() == 3 && x.size(2) % width == 0 && rotated <= x.size(2) / width, kOperation,
              "expected [B, T, N D] with heads of D = {} and at least {} of them to rotate; found {}.", width, rotated,
              c10::str(x.sizes()));
  const int64_t rows = cos.dim() == 3 ? x.size(0) * x.size(1) : x.size(1);
  PRISM_CHECK(cos.numel() / cos.size(-1) == rows, kOperation, "expected tables for {} positions; found {}.", rows,
              cos.numel() / cos.size(-1));
  return x.size(2) / width;
}

}  // namespace

Tensor rotate_heads(const Tensor& x_BTF, const Tensor& cos, const Tensor& sin, int64_t rotated_heads) {
  check(x_BTF, cos, sin, rotated_heads);
  if (!x_BTF.device().is_cpu()) return rotate_heads_plain(x_BTF, cos, sin, rotated_heads);
  return RotateFunction::apply(x_BTF.contiguous(), cos, sin, rotated_heads);
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
