#include "prism/kernels/euclidean_norm.h"

#include <ATen/Functions.h>

namespace prism {

torch::Tensor euclidean_norm(const torch::Tensor& values) {
  constexpr int64_t kSmall = 16 * 1024, kRow = 1024;
  const torch::NoGradGuard no_gradients;
  const auto flat = values.detach().reshape({-1});
  const auto type = flat.scalar_type() == torch::kDouble ? torch::kDouble : torch::kFloat;
  const auto norm_of = [&](const torch::Tensor& part, at::OptionalIntArrayRef dims) {
    return at::linalg_vector_norm(part, 2, dims, /*keepdim=*/false, type).to(torch::kDouble);
  };
  if (flat.numel() <= kSmall || !flat.is_cpu()) return norm_of(flat, std::nullopt);
  const int64_t whole = flat.numel() / kRow * kRow;
  auto norms = norm_of(flat.narrow(0, 0, whole).view({-1, kRow}), at::IntArrayRef{1});
  if (whole < flat.numel())
    norms = at::cat({norms, norm_of(flat.narrow(0, whole, flat.numel() - whole), std::nullopt).view({1})});
  return at::linalg_vector_norm(norms);
}

}  // namespace prism
