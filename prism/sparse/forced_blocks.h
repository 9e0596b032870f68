// The blocks that a row always keeps, and the list of all that it keeps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

namespace prism {

/// The blocks that rows keep whatever they choose. They do not count towards the shares of a choice.
struct ForcedBlocks {
  int64_t sink = 0;        ///< first key blocks
  int64_t recent = 0;      ///< most recent key blocks, counting the row's own
  int64_t last_dense = 0;  ///< last rows of a prompt, which keep every block they see
};

/// The first of the last rows of a prompt that keep every block they see.
inline int64_t first_dense_row(int64_t prompt_rows, int64_t last_dense) {
  return std::max(prompt_rows - last_dense, int64_t{0});
}

/// Keeps the first `count` blocks, the sink.
inline void keep_first(std::span<uint8_t> kept, int64_t count) {
  std::fill_n(kept.begin(), std::min(count, static_cast<int64_t>(kept.size())), uint8_t{1});
}

/// Keeps the blocks from the row's own on and the `count` - 1 blocks before it; none if count is 0.
inline void keep_last(std::span<uint8_t> kept, int64_t own, int64_t count) {
  if (count == 0) return;
  const int64_t first = std::clamp(own + 1 - count, int64_t{0}, static_cast<int64_t>(kept.size()));
  std::fill(kept.begin() + first, kept.end(), uint8_t{1});
}

/// Appends the numbers of the blocks that are kept, ascending.
inline void append_kept(std::span<const uint8_t> kept, std::vector<int32_t>& blocks) {
  for (size_t v = 0; v < kept.size(); ++v)
    if (kept[v] != 0) blocks.push_back(static_cast<int32_t>(v));
}

}  // namespace prism
