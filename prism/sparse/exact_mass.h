// The exact attention that each block of keys receives, to measure estimates against.
#pragma once

#include <torch/types.h>

#include "prism/sparse/head_by_head.h"

namespace prism {

/// Causal softmax(scale q k^T) of every query of a row, summed over the keys of each block.
/// @return  [queries of the row, blocks] float64; the shares of a query add up to 1.
torch::Tensor exact_mass(const HeadInput& head, int64_t row);

}  // namespace prism
