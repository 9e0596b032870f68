// Base of selectors that choose by positions alone. They read no queries and no keys.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "prism/sparse/block_sizes.h"
#include "prism/sparse/selector.h"

namespace prism {

/// Calls a function once for each row of a sequence, which sets to 1 those of the row's visible blocks that all heads
/// keep. The row's own blocks are always kept.
class PositionalSelector : public Selector {
 public:
  using Keep = std::function<void(const HeadBlocks& blocks, int64_t row, std::span<uint8_t> kept)>;

  /// @throws InputError as check().
  PositionalSelector(const BlockSizes& blocks, Keep keep);
  std::unique_ptr<SelectorState> make_state(const SelectorInput& input) const override;
  BlockMask select(const SelectorInput& input, SelectorState& state) const override;

 private:
  BlockSizes blocks_;
  Keep keep_;
};

}  // namespace prism
