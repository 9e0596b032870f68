// Means over the tokens of each sequence.
#pragma once

#include <torch/types.h>

namespace prism {

/// The mean over the first lengths_B[b] positions of row b; 0 for a row without tokens. Later positions may hold
/// anything, even NaN.
/// @param x_BTD      [B, T, D] in any dtype.
/// @param lengths_B  int32 or int64; undefined: T.
/// @param type       dtype of the sums and of the result [B, D].
torch::Tensor mean_of_rows(const torch::Tensor& x_BTD, const torch::Tensor& lengths_B, torch::ScalarType type);

}  // namespace prism
