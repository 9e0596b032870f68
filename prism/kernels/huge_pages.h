// Memory in huge pages, for what is read from end to end again and again, such as a cache of keys and values.
#pragma once

#include <torch/types.h>

namespace prism {

/// `count` uninitialised values on the CPU. Where they fill a huge page (2 MiB) or more, the system is asked for such
/// pages: the processor then walks its page tables once for 2 MiB and reads ahead beyond 4 KiB. Nothing is asked for
/// other memory, which huge pages make larger and slower to get (docs/log.md).
torch::Tensor empty_in_huge_pages(int64_t count, torch::ScalarType type);

}  // namespace prism
