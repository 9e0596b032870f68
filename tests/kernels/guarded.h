// Memory between pages that fault: a kernel that reads or writes beyond its arrays is found out in any build.
// Sanitizers see neither masked vector loads and stores nor tile loads (g++ 12 makes built-ins of them that it does not
// instrument).
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace prism {

/// An allocator whose memory ends where a forbidden page begins, and begins at most `Alignment` - 1 bytes and the rest
/// of a page behind another one. A vector made with its size takes exactly that.
template <class T, size_t Alignment = alignof(T)>
struct GuardedAllocator {
  using value_type = T;
  template <class U>
  struct rebind {
    using other = GuardedAllocator<U, Alignment>;
  };
  GuardedAllocator() = default;
  template <class U>
  explicit GuardedAllocator(const GuardedAllocator<U, Alignment>&) {}

  T* allocate(size_t count) {
    const size_t bytes = count * sizeof(T), body = body_of(count);
    void* map = ::mmap(nullptr, body + 2 * page(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (map == MAP_FAILED) throw std::bad_alloc();
    auto* first = static_cast<std::byte*>(map) + page();
    if (::mprotect(first, body, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    return reinterpret_cast<T*>(first + (body - bytes) / Alignment * Alignment);
  }
  void deallocate(T* values, size_t count) {
    auto* first = reinterpret_cast<std::byte*>(values);
    first -= reinterpret_cast<uintptr_t>(first) % page();
    ::munmap(first - page(), body_of(count) + 2 * page());
  }
  bool operator==(const GuardedAllocator&) const { return true; }

 private:
  static size_t page() {
    static const auto bytes = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
  }
  static size_t body_of(size_t count) { return (count * sizeof(T) + page() - 1) / page() * page(); }
};

template <class T>
using Guarded = std::vector<T, GuardedAllocator<T>>;

/// Scratch memory as kernels want it, from a cache line on.
using GuardedScratch = std::vector<std::byte, GuardedAllocator<std::byte, 64>>;

}  // namespace prism
