// What a kernel gets while it runs: memory and threads.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/types.h>

#include <cstddef>
#include <memory>
#include <utility>

namespace prism {

/// Memory from a 64-byte boundary, and what owns it.
inline std::pair<std::byte*, torch::Tensor> make_scratch(size_t bytes) {
  constexpr size_t kBoundary = 64;
  size_t space = bytes + kBoundary;
  torch::Tensor owner = at::empty({static_cast<int64_t>(space)}, torch::kByte);
  void* start = owner.data_ptr();
  return {static_cast<std::byte*>(std::align(kBoundary, bytes, start, space)), owner};
}

/// One where a caller already works in parallel.
inline int kernel_threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace prism
