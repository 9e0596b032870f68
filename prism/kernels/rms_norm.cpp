// v1: one loop over a row's elements for the statistic, one for the output; the gain's gradient by fixed blocks of
// rows.
#include "prism/kernels/rms_norm.h"

#include <ATen/Parallel.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

using torch::Tensor;
using torch::autograd::AutogradContext;
using torch::autograd::Variable;
using torch::autograd::variable_list;

/// Rows whose gain gradients are summed before they meet others: a fixed tree, whatever the number of threads.
constexpr int64_t kRowsPerBlock = 64;

template <class T, class Out>
void forward_rows(const T* x, const T* weight, Out* y, T* inverse_rms, int64_t first, int64_t last, int64_t width,
                  T eps) {
  for (int64_t row = first; row < last; ++row) {
    const T* in = x + row * width;
    Out* out = y + row * width;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t i = 0; i < width; ++i) sum += in[i] * in[i];
    const T inverse = T(1) / std::sqrt(sum / static_cast<T>(width) + eps);
    inverse_rms[row] = inverse;
    for (int64_t i = 0; i < width; ++i) out[i] = static_cast<Out>(in[i] * inverse * weight[i]);
  }
}

/// dx = r (w dy - x r^2 mean(w dy x)),  dw += dy x r, with r = 1 / rms.
template <class T, class Out>
void backward_rows(const Out* dy, const T* x, const T* weight, const T* inverse_rms, T* dx, T* dweight, int64_t first,
                   int64_t last, int64_t width) {
  for (int64_t row = first; row < last; ++row) {
    const T* in = x + row * width;
    const Out* grad = dy + row * width;
    const T inverse = inverse_rms[row];
    T dot = 0;
#pragma omp simd reduction(+ : dot)
    for (int64_t i = 0; i < width; ++i) dot += static_cast<T>(grad[i]) * weight[i] * in[i];
    const T shared = dot * inverse * inverse / static_cast<T>(width);
    T* out = dx + row * width;
    for (int64_t i = 0; i < width; ++i) {
      const T g = static_cast<T>(grad[i]);
      out[i] = inverse * (g * weight[i] - in[i] * shared);
      dweight[i] += g * in[i] * inverse;
    }
  }
}

template <class T, class Out>
void run_forward(const Tensor& x, const Tensor& weight, const Tensor& y, const Tensor& inverse_rms, double eps) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  at::parallel_for(0, rows, kRowsPerBlock, [&](int64_t first, int64_t last) {
    forward_rows(x.const_data_ptr<T>(), weight.const_data_ptr<T>(), y.mutable_data_ptr<Out>(),
                 inverse_rms.mutable_data_ptr<T>(), first, last, width, static_cast<T>(eps));
  });
}

template <class T, class Out>
void run_backward(const Tensor& dy, const Tensor& x, const Tensor& weight, const Tensor& inverse_rms, const Tensor& dx,
                  const Tensor& dweight_blocks) {
  const int64_t width = x.size(-1), rows = x.numel() / width;
  at::parallel_for(0, dweight_blocks.size(0), 1, [&](int64_t first, int64_t last) {
    for (int64_t block = first; block < last; ++block) {
      backward_rows(dy.const_data_ptr<Out>(), x.const_data_ptr<T>(), weight.const_data_ptr<T>(),
                    inverse_rms.const_data_ptr<T>(), dx.mutable_data_ptr<T>(),
                    dweight_blocks.mutable_data_ptr<T>() + block * width, block * kRowsPerBlock,
                    std::min(rows, (block + 1) * kRowsPerBlock), width);
    }
  });
}

struct RmsNormFunction : torch::autograd::Function<RmsNormFunction> {
  static Variable forward(AutogradContext* context, const Variable& x_given, const Variable& weight, double eps,
                          torch::ScalarType out) {
    const auto x = x_given.contiguous();
    auto y = torch::empty(x.sizes(), x.options().dtype(out));
    auto inverse_rms = torch::empty({x.numel() / x.size(-1)}, x.options());
    if (x.scalar_type() == torch::kDouble) {
      run_forward<double, double>(x, weight, y, inverse_rms, eps);
    } else if (out == torch::kBFloat16) {
      run_forward<float, at::BFloat16>(x, weight, y, inverse_rms, eps);
    } else {
      run_forward<float, float>(x, weight, y, inverse_rms, eps);
    }
    context->save_for_backward({x, weight, inverse_rms});
    return y;
  }

  static variable_list backward(AutogradContext* context, variable_list gradients) {
    const auto saved = context->get_saved_variables();
    const auto &x = saved[0], &weight = saved[1], &inverse_rms = saved[2];
    const auto dy = gradients[0].contiguous();
    auto dx = torch::empty_like(x);
    const int64_t width = x.size(-1), rows = x.numel() / width;
    auto dweight_blocks = torch::zeros({(rows + kRowsPerBlock - 1) / kRowsPerBlock, width}, x.options());
    if (x.scalar_type() == torch::kDouble) {
      run_backward<double, double>(dy, x, weight, inverse_rms, dx, dweight_blocks);
    } else if (dy.scalar_type() == torch::kBFloat16) {
      run_backward<float, at::BFloat16>(dy, x, weight, inverse_rms, dx, dweight_blocks);
    } else {
      run_backward<float, float>(dy, x, weight, inverse_rms, dx, dweight_blocks);
    }
    return {dx, dweight_blocks.sum(0), Variable(), Variable()};
  }
};

}  // namespace

Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps, torch::ScalarType out) {
  const auto type = x.scalar_type();
  PRISM_CHECK((type == torch::kFloat && (out == torch::kFloat || out == torch::kBFloat16)) ||
                  (type == torch::kDouble && out == type),
              "rms_norm", "expected float32 to float32 or bfloat16, or float64 to float64; found {} to {}.",
              c10::toString(type), c10::toString(out));
  PRISM_CHECK(weight.dim() == 1 && x.dim() >= 1 && weight.size(0) == x.size(-1) && weight.scalar_type() == type,
              "rms_norm", "expected a gain of width {} and x's dtype; found width {} {}.", x.size(-1), weight.numel(),
              c10::toString(weight.scalar_type()));
  if (!x.device().is_cpu()) return rms_norm_plain(x, weight, eps, out);
  return RmsNormFunction::apply(x, weight, eps, out);
}

Tensor rms_norm_plain(const Tensor& x, const Tensor& weight, double eps, torch::ScalarType out) {
  return (x * torch::rsqrt(x.square().mean(-1, /*keepdim=*/true) + eps) * weight).to(out);
}

}  // namespace prism
