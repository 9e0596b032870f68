#include "prism/kernels/memory/huge_pages.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <sys/mman.h>

#include <memory>

namespace prism {

torch::Tensor empty_in_huge_pages(int64_t count, torch::ScalarType type) {
  constexpr size_t kPage = size_t{2} << 20;
  const size_t bytes = static_cast<size_t>(count) * c10::elementSize(type);
  if (bytes < kPage) return at::empty({count}, type);
  // One extra page, so that the start can be aligned to a page boundary.
  const size_t mapped = (bytes + kPage - 1) / kPage * kPage + kPage;
  void* start = ::mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return at::empty({count}, type);
  ::madvise(start, mapped, MADV_HUGEPAGE);  // only a hint: small pages also work
  void* data = start;
  size_t space = mapped;
  std::align(kPage, bytes, data, space);
  return at::from_blob(
      data, {count}, [start, mapped](void*) { ::munmap(start, mapped); }, torch::TensorOptions().dtype(type));
}

}  // namespace prism
