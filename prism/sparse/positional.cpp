#include "prism/sparse/positional.h"

#include <utility>
#include <vector>

#include "prism/sparse/forced_blocks.h"

namespace prism {

PositionalSelector::PositionalSelector(const BlockSizes& blocks, Keep keep) : blocks_(blocks), keep_(std::move(keep)) {
  check(blocks);
}

std::unique_ptr<SelectorState> PositionalSelector::make_state(const SelectorInput&) const {
  return std::make_unique<NoSelectorState>();
}

BlockMask PositionalSelector::select(const SelectorInput& input, SelectorState&) const {
  const SelectorLengths lengths(input);
  const int64_t batch = input.q_BTHD.size(0), rows = lengths.most_rows(blocks_.queries());
  std::vector<std::vector<int32_t>> kept_BM(static_cast<size_t>(batch * rows));
  std::vector<uint8_t> kept;
  for (int64_t b = 0; b < batch; ++b) {
    const auto blocks = lengths.blocks(b, blocks_.queries(), blocks_.keys());
    for (int64_t m = 0; m < blocks.rows(); ++m) {
      kept.assign(static_cast<size_t>(blocks.visible(m)), 0);
      keep_(blocks, m, kept);
      keep_last(kept, blocks.own_block(m), 1);
      append_kept(kept, kept_BM[static_cast<size_t>(b * rows + m)]);
    }
  }
  return spread_to_heads(make_block_mask(kept_BM, batch, 1, blocks_.queries(), blocks_.keys()), input.heads());
}

}  // namespace prism
