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
  const Shape shape{in.size(0) * in.size(1), in.size(2), rotated, in.size(3), cos.numel() / cos.size(-1)};
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

void check(const Tensor& x, const Tensor& cos, const Tensor& sin, int64_t rotated) {
  PRISM_CHECK(x.dim() == 4 && x.size(3) % 2 == 0 && rotated <= x.size(2), "rotate_heads",
              "expected [B, T, N, D] with an even D and at most N heads to rotate; found {} axes, D = {}.", x.dim(),
              x.size(-1));
  const int64_t rows = cos.dim() == 3 ? x.size(0) * x.size(1) : x.size(1);
  PRISM_CHECK(cos.sizes() == sin.sizes() && cos.size(-1) * 2 == x.size(3) && cos.numel() / cos.size(-1) == rows &&
                  cos.scalar_type() == torch::kFloat && cos.is_contiguous() && sin.is_contiguous(),
              "rotate_heads", "expected float32 tables for {} positions of width {}; found {} of {}.", rows,
              x.size(3) / 2, cos.numel() / cos.size(-1), cos.size(-1));
}

}  // namespace

Tensor rotate_heads(const Tensor& x_BTND, const Tensor& cos, const Tensor& sin, int64_t rotated_heads) {
  check(x_BTND, cos, sin, rotated_heads);
  if (!x_BTND.device().is_cpu()) return rotate_heads_plain(x_BTND, cos, sin, rotated_heads);
  return RotateFunction::apply(x_BTND.contiguous(), cos, sin, rotated_heads);
}

Tensor rotate_heads_plain(const Tensor& x_BTND, const Tensor& cos, const Tensor& sin, int64_t rotated_heads) {
  const auto wide = x_BTND.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto halves = x_BTND.narrow(2, 0, rotated_heads).to(wide).chunk(2, -1);
  const auto c = cos.to(wide).unsqueeze(-2), s = sin.to(wide).unsqueeze(-2);
  const auto turned =
      torch::cat({halves[0] * c - halves[1] * s, halves[1] * c + halves[0] * s}, -1).to(x_BTND.scalar_type());
  return torch::cat({turned, x_BTND.narrow(2, rotated_heads, x_BTND.size(2) - rotated_heads)}, 2);
}

}  // namespace prism
