// How much attention each block of keys really gets: what estimates are measured by.
#pragma once

#include <torch/types.h>

#include "prism/sparse/head_by_head.h"

namespace prism {

/// softmax(scale q k^T) of every query of a row, causal, summed over the keys of each block. [queries of the row,
/// blocks] float64; a query's shares add up to 1.
torch::Tensor exact_mass(const HeadInput& head, int64_t row);

}  // namespace prism
