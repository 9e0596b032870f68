#include "prism/kernels/memory/small_blocks.h"

#include <c10/core/Allocator.h>
#include <c10/core/CPUAllocator.h>
#include <c10/core/impl/alloc_cpu.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace prism {
namespace {

constexpr size_t kAlignment = 64;  // also the size of a block's header
constexpr size_t kSmallest = 64, kLargest = 256 << 10, kKept = 1 << 20;
constexpr size_t kClasses = std::bit_width(kLargest) - std::bit_width(kSmallest) + 1;

/// What stands before a block's memory.
struct alignas(kAlignment) Header {
  size_t size_class = 0;   ///< kClasses: larger than all of them
  Header* next = nullptr;  ///< of the free blocks
};

constexpr size_t bytes_of(size_t size_class) {
  return kSmallest << size_class;
}

/// The free blocks of a thread.
class FreeBlocks {
 public:
  FreeBlocks() = default;
  FreeBlocks(const FreeBlocks&) = delete;
  FreeBlocks& operator=(const FreeBlocks&) = delete;
  ~FreeBlocks() {
    for (auto& [first, count] : lists_)
      for (Header* next = nullptr; first != nullptr; first = next) {
        next = first->next;
        c10::free_cpu(first);
      }
    has_ended = true;
  }

  Header* take(size_t size_class) {
    auto& [first, count] = lists_[size_class];
    if (first == nullptr) return nullptr;
    Header* taken = first;
    first = taken->next;
    --count;
    return taken;
  }
  /// @return  false if there are enough.
  bool give(Header* block) {
    auto& [first, count] = lists_[block->size_class];
    if ((count + 1) * bytes_of(block->size_class) > kKept) return false;
    block->next = first;
    first = block;
    ++count;
    return true;
  }

  static thread_local bool has_ended;  ///< tensors may outlive the lists of a thread

 private:
  struct List {
    Header* first = nullptr;
    size_t count = 0;
  };
  std::array<List, kClasses> lists_ = {};
};
thread_local bool FreeBlocks::has_ended = false;
thread_local FreeBlocks free_blocks;

void release(void* data) {
  if (data == nullptr) return;
  c10::profiledCPUMemoryReporter().Delete(data);
  Header* block = static_cast<Header*>(data) - 1;
  const bool is_kept = block->size_class < kClasses && !FreeBlocks::has_ended && free_blocks.give(block);
  if (!is_kept) c10::free_cpu(block);
}

class ReusingAllocator final : public c10::Allocator {
 public:
  c10::DataPtr allocate(size_t bytes) override {
    const bool is_small = bytes <= kLargest;
    const auto size_class =
        is_small ? static_cast<size_t>(std::bit_width((std::max(bytes, kSmallest) - 1) / kSmallest)) : kClasses;
    void* data = nullptr;
    if (bytes > 0) {
      Header* block = is_small && !FreeBlocks::has_ended ? free_blocks.take(size_class) : nullptr;
      if (block == nullptr)
        block = new (c10::alloc_cpu(sizeof(Header) + (is_small ? bytes_of(size_class) : bytes))) Header{size_class};
      data = block + 1;
      c10::profiledCPUMemoryReporter().New(data, bytes);
    }
    return {data, data, &release, c10::Device(c10::DeviceType::CPU)};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t bytes) const override { default_copy_data(to, from, bytes); }
};

}  // namespace

void reuse_small_blocks() {
  static ReusingAllocator allocator;
  c10::SetCPUAllocator(&allocator, /*priority=*/1);
}

}  // namespace prism
