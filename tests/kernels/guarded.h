// Memory between guard pages: a kernel that reads or writes beyond its arrays faults in any build. Sanitizers do not
// see masked vector loads and stores or tile loads, because g++ 12 compiles them to built-ins that it does not
// instrument.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

namespace prism {

/// An allocator whose memory ends at most `Alignment` - 1 bytes before a guard page and starts less than a page after
/// another one. A vector constructed with its size allocates exactly that much.
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

/// Scratch memory for kernels, aligned to a cache line.
using GuardedScratch = std::vector<std::byte, GuardedAllocator<std::byte, 64>>;

}  // namespace prism
