// Base of selectors that decide each row of a head independently.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <utility>

#include "prism/sparse/head_by_head.h"

namespace prism {

/// Calls a function for each row, which sets to 1 those of the row's visible blocks that it keeps.
class RowByRowSelector : public HeadByHeadSelector {
 public:
  using Keep = std::function<void(const HeadInput& head, int64_t row, std::span<uint8_t> kept)>;

  /// @throws InputError as check().
  RowByRowSelector(const BlockSizes& blocks, Keep keep) : HeadByHeadSelector(blocks), keep_(std::move(keep)) {}

 protected:
  torch::Tensor select_head(const HeadInput& head) const override;

 private:
  Keep keep_;
};

}  // namespace prism
