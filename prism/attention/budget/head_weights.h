// What attention does with the heads of each sequence, as head budgets decide.
#pragma once

#include <torch/types.h>

namespace prism {

// B batch, H heads

struct HeadWeights {
  torch::Tensor weight_BH;  ///< w, by which a head's output is multiplied; 0 for heads that are not kept in training
  torch::Tensor kept_BH;    ///< bool, the heads to compute; undefined: all
};

}  // namespace prism
