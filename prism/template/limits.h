// Limits of a rendering, and ranges of what it wrote.
#pragma once

#include <cstddef>
#include <cstdint>

namespace prism {

/// What one rendering may use, so that a hostile template exhausts neither time nor memory.
struct RenderLimits {
  int64_t steps = 10'000'000;                ///< evaluated parts of the template; long values count several times
  int64_t value_bytes = int64_t{16} << 20;   ///< of one text or list, and of the output
  int64_t total_bytes = int64_t{512} << 20;  ///< of all texts and lists that are made, one after another
};

/// A range [begin, end) of the bytes of a rendered text.
struct ByteRange {
  size_t begin = 0, end = 0;
  bool operator==(const ByteRange&) const = default;
};

}  // namespace prism
