#include "prism/evaluation/windows.h"

#include <algorithm>

#include "prism/core/error.h"

namespace prism {

std::vector<Window> cut_windows(int64_t begin, int64_t tokens, int64_t size, int64_t stride) {
  PRISM_ASSERT(size >= 1 && stride >= 1 && stride <= size, "windows", "size {}, stride {}.", size, stride);
  std::vector<Window> windows;
  const int64_t predictions = tokens - 1;
  int64_t counted = 0;
  for (int64_t start = 0; counted < predictions; start += stride) {
    const int64_t length = std::min(size, predictions - start);
    windows.push_back({begin + start, length, counted - start});
    counted = start + length;
  }
  return windows;
}

}  // namespace prism
