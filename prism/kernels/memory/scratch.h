// Scratch memory and threads for kernels.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <memory>

namespace prism {

/// Memory aligned to 64 bytes: on the stack where it is small, as for a few rows, because an allocation takes as long
/// as they do.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    if (bytes <= small_.size()) return;
    size_t space = bytes + kBoundary;
    large_ = at::empty({static_cast<int64_t>(space)}, torch::kByte);
    void* start = large_.data_ptr();
    data_ = static_cast<std::byte*>(std::align(kBoundary, bytes, start, space));
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() { return data_; }

 private:
  static constexpr size_t kBoundary = 64;
  alignas(kBoundary) std::array<std::byte, 4096> small_;
  torch::Tensor large_;
  std::byte* data_ = small_.data();
};

/// Number of threads a kernel may use: 1 if the caller is already in a parallel region.
inline int kernel_threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace prism
