// Memory in huge pages, for data that is read in full again and again, such as a key/value cache.
#pragma once

#include <torch/types.h>

namespace prism {

/// `count` uninitialised values on the CPU. If they fill at least one huge page (2 MiB), this asks the system for huge
/// pages: the processor then walks its page tables once per 2 MiB and prefetches beyond 4 KiB. Smaller tensors use
/// ordinary memory, because huge pages would make them larger and slower to allocate (docs/log.md).
torch::Tensor empty_in_huge_pages(int64_t count, torch::ScalarType type);

}  // namespace prism
