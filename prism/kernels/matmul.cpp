#include "prism/kernels/matmul.h"

#include <ATen/Functions.h>

#include "prism/core/error.h"
#include "prism/kernels/gemm/gemm.h"
#include "prism/kernels/memory/scratch.h"
#include "prism/kernels/row_kernels.h"

namespace prism {
namespace {

using torch::Tensor;

/// With fewer rows, packing b does not pay off.
constexpr int64_t kFewestRows = 64;

gemm::Matrix matrix_of(const Tensor& t) {
  if (t.stride(1) == 1) return {t.const_data_ptr(), t.stride(0), false};
  return {t.const_data_ptr(), t.stride(1), true};
}

bool has_single_or_half(const Tensor& t) {
  return t.scalar_type() == torch::kBFloat16 || t.scalar_type() == torch::kFloat;
}
gemm::Type type_of(const Tensor& t) {
  return t.scalar_type() == torch::kBFloat16 ? gemm::Type::bfloat16 : gemm::Type::float32;
}

gemm::Problem problem_of(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  gemm::Problem p;
  p.type = type_of(a);
  p.out_type = type_of(out);
  p.rows = a.size(0);
  p.columns = b.size(1);
  p.inner = a.size(1);
  p.a = matrix_of(a);
  p.b = matrix_of(b);
  p.out = out.mutable_data_ptr();
  p.out_stride = out.stride(0);
  p.accumulate = accumulate;
  p.threads = kernel_threads();
  return p;
}

bool has_dense_axis(const Tensor& t) {
  return t.stride(0) == 1 || t.stride(1) == 1;
}

/// prism's kernels for a product, or null if LibTorch's must be used.
const gemm::Kernels* kernels_for(const Tensor& out, const Tensor& a, const Tensor& b) {
  const bool served = a.device().is_cpu() && has_single_or_half(a) && has_single_or_half(out) && out.numel() > 0 &&
                      a.size(1) > 0 && a.size(0) >= kFewestRows && out.stride(1) == 1 && has_dense_axis(a) &&
                      has_dense_axis(b);
  return served ? gemm::kernels_of(current_isa()) : nullptr;
}

void multiply(const gemm::Kernels& kernels, gemm::Problem& p) {
  Scratch scratch(kernels.scratch_bytes(p));
  p.scratch = scratch.data();
  kernels.multiply(p);
}

/// The kernels for a float32 product x w^T of few rows, or null. @param b  w^T
const rows::Kernels* kernels_for_few_rows(const Tensor& out, const Tensor& a, const Tensor& b) {
  const bool served = a.scalar_type() == torch::kFloat && a.size(0) < kFewestRows && out.numel() > 0 &&
                      a.stride(1) == 1 && b.stride(0) == 1 && out.stride(1) == 1;
  return served ? row_kernels(a, torch::kFloat) : nullptr;
}

void project(const rows::Kernels& kernels, const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias,
             bool relu) {
  rows::Projection p;
  p.inner = a.size(1);
  p.x_rows = a.size(0);
  p.x_stride = a.stride(0);
  p.w_stride = b.stride(1);
  p.y_stride = out.stride(0);
  p.x = a.const_data_ptr<float>();
  p.w = b.const_data_ptr<float>();
  p.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
  p.relu = relu;
  p.y = out.mutable_data_ptr<float>();
  for_rows(kernels.project, p, b.size(1), p.inner * p.x_rows);
}

void check_shapes(const Tensor& out, const Tensor& a, const Tensor& b) {
  PRISM_ASSERT(a.dim() == 2 && b.dim() == 2 && out.dim() == 2 && a.size(1) == b.size(0) && out.size(0) == a.size(0) &&
                   out.size(1) == b.size(1) && a.scalar_type() == b.scalar_type(),
               "matmul", "inconsistent shapes or dtypes");
}

}  // namespace

Tensor matmul(const Tensor& a, const Tensor& b, torch::ScalarType type) {
  Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(type));
  matmul_into(out, a, b);
  return out;
}

void matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, bool accumulate) {
  check_shapes(out, a, b);
  PRISM_ASSERT(!accumulate || out.scalar_type() != torch::kBFloat16, "matmul",
               "accumulation into bfloat16 would round twice");
  if (const auto* kernels = kernels_for(out, a, b)) {
    gemm::Problem p = problem_of(out, a, b, accumulate);
    return multiply(*kernels, p);
  }
  Tensor result = out;
  if (accumulate && out.scalar_type() == a.scalar_type()) {
    result.addmm_(a, b);
  } else if (accumulate) {
    result.add_(at::mm(a, b));
  } else if (out.scalar_type() == a.scalar_type()) {
    at::mm_out(result, a, b);
  } else {
    result.copy_(at::mm(a, b));
  }
}

void matmul_into(const Tensor& out, const Tensor& a, const Tensor& b, const Tensor& bias, bool relu) {
  check_shapes(out, a, b);
  PRISM_ASSERT(out.scalar_type() == a.scalar_type() && (!bias.defined() || bias.size(0) == out.size(1)), "matmul",
               "wrong dtype of the result or wrong width of the bias");
  if (const auto* kernels = kernels_for(out, a, b)) {
    gemm::Problem p = problem_of(out, a, b, false);
    p.bias = bias.defined() ? bias.const_data_ptr<float>() : nullptr;
    p.relu = relu;
    return multiply(*kernels, p);
  }
  if (const auto* kernels = kernels_for_few_rows(out, a, b)) return project(*kernels, out, a, b, bias, relu);
  Tensor result = out;
  at::mm_out(result, a, b);
  if (bias.defined()) result.add_(bias);
  if (relu) result.relu_();
}

void bmm_into(const Tensor& out, const Tensor& a, const Tensor& b) {
  PRISM_ASSERT(a.dim() == 3 && b.dim() == 3 && out.dim() == 3 && a.size(0) == out.size(0) && b.size(0) == out.size(0) &&
                   out.scalar_type() == a.scalar_type(),
               "matmul", "inconsistent batches or dtypes");
  if (out.size(0) == 0) return;
  check_shapes(out[0], a[0], b[0]);
  if (kernels_for(out[0], a[0], b[0]) == nullptr) {
    Tensor result = out;
    at::bmm_out(result, a, b);
    return;
  }
  for (int64_t i = 0; i < out.size(0); ++i) matmul_into(out[i], a[i], b[i]);
}

}  // namespace prism
