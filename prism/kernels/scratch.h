// Scratch memory and threads for kernels.
#pragma once

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <torch/types.h>

#include <array>
#include <cstddef>
#include <memory>
#include <optional>
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

/// The same on the stack where it is small, as for a few rows: an allocation takes as long as they do.
class Scratch {
 public:
  explicit Scratch(size_t bytes) {
    if (bytes > small_.size()) large_ = make_scratch(bytes);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() { return large_ ? large_->first : small_.data(); }

 private:
  alignas(64) std::array<std::byte, 4096> small_;
  std::optional<std::pair<std::byte*, torch::Tensor>> large_;
};

/// Number of threads a kernel may use: 1 if the caller is already in a parallel region.
inline int kernel_threads() {
  return at::in_parallel_region() ? 1 : at::get_num_threads();
}

}  // namespace prism
