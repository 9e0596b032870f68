// Calls the row kernels on tensors.
#pragma once

#include <ATen/Parallel.h>
#include <torch/types.h>

#include <algorithm>
#include <initializer_list>

#include "prism/kernels/rows/rows.h"

namespace prism {

/// The row kernels for tensors of `type` on x's device, or null if only the plain version supports them.
inline const rows::Kernels* row_kernels(const torch::Tensor& x, torch::ScalarType type) {
  const bool served = x.device().is_cpu() && (type == torch::kBFloat16 || type == torch::kFloat);
  return served ? rows::kernels_of(current_isa()) : nullptr;
}

/// Returns true if autograd must record a call with these inputs, some of which may be undefined. Recording takes
/// several times as long as a kernel takes for one row.
inline bool is_recorded(std::initializer_list<const torch::Tensor*> inputs) {
  return at::GradMode::is_enabled() && std::any_of(inputs.begin(), inputs.end(), [](const torch::Tensor* input) {
           return input->defined() && input->requires_grad();
         });
}

inline rows::Type row_type(torch::ScalarType type) {
  return type == torch::kBFloat16 ? rows::Type::bfloat16 : rows::Type::float32;
}

/// Calls `kernel(work, first, last)` on all threads, each with at least about kValues values.
template <class Work>
void for_rows(void (*kernel)(const Work&, int64_t, int64_t), const Work& work, int64_t rows, int64_t width) {
  constexpr int64_t kValues = 1 << 14;  // with fewer values a second thread costs more than it saves
  at::parallel_for(0, rows, std::max<int64_t>(1, kValues / std::max<int64_t>(1, width)),
                   [&](int64_t first, int64_t last) { kernel(work, first, last); });
}

}  // namespace prism
