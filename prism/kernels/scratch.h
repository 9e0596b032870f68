// Scratch memory and threads for kernels.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace prism {

/// Memory aligned to 64 bytes, and the tensor that owns it.
inline std::pair<std::byte*, torch::Tensor> make_scratch(size_t bytes) {
  constexpr size_t kBoundary = 64;
  size_t space = bytes + kBoundary;
  torch::Tensor owner = at::empty({static_cast<int64_t>(space)}, torch::kByte);
  void* start = owner.data_ptr();
  return {static_cast<std::byte*>(std::align(kBoundary, bytes, start, space)), owner};
}

/// Number of threads a kernel may use: 1 if the caller is already in a parallel region.
inline int kernel_threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace prism
