#include "prism/sparse/prefill_cost.h"

#include <algorithm>

namespace prism {

KeptWork kept_work(const HeadBlocks& blocks, int64_t row, std::span<const int32_t> kept) {
  const int64_t begin = blocks.first_position(row), end = blocks.end_position(row);
  int64_t pairs = 0, runs = 0;
  for (size_t i = 0; i < kept.size(); ++i) {
    const int32_t block = kept[i];
    runs += static_cast<int64_t>(i == 0 || block != kept[i - 1] + 1);
    const int64_t first = block * blocks.key_block, last = std::min(first + blocks.key_block, blocks.keys);
    if (last <= begin + 1) {
      pairs += (end - begin) * (last - first);
    } else {
      for (int64_t t = begin; t < end; ++t) pairs += std::clamp(t + 1 - first, int64_t{0}, last - first);
    }
  }
  return {static_cast<double>(pairs), static_cast<double>(runs)};
}

KeptWork kept_work(const SelectorLengths& lengths, const BlockMask& mask) {
  const int64_t heads = mask.counts_BHM.size(1), rows = mask.counts_BHM.size(2), width = mask.indices_BHMN.size(3);
  const auto* counts = mask.counts_BHM.const_data_ptr<int32_t>();
  const auto* indices = mask.indices_BHMN.const_data_ptr<int32_t>();
  KeptWork work;
  for (int64_t i = 0; i < mask.counts_BHM.size(0) * heads; ++i) {
    const auto blocks = lengths.blocks(i / heads, mask.query_block_size, mask.key_block_size);
    for (int64_t m = 0; m < blocks.rows(); ++m) {
      const int64_t row = i * rows + m;
      const auto of_row = kept_work(blocks, m, {indices + row * width, static_cast<size_t>(counts[row])});
      work.pairs += of_row.pairs;
      work.runs += of_row.runs;
    }
  }
  return work;
}

}  // namespace prism
