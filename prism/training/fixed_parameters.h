// Parameters that training leaves as they are.
#pragma once

#include <string>
#include <vector>

#include "prism/layers/weight_list.h"

namespace prism {

/// Returns true if the weight is fixed as a whole.
bool is_fixed(const WeightEntry& entry);

/// Fixes the parameters whose names in model.safetensors match one of the patterns. A pattern is a name in which `*`
/// stands for any text, `?` for one character and `[ab]` for one of these (fnmatch(3)). A weight that is fixed as a
/// whole has no gradient and no optimizer state. Of a fused weight (q, k and v; gates and up) the optimizer updates
/// only the rows of the other parameters.
/// @throws InputError for a pattern that matches no parameter, or if no parameter is left to train.
void fix_parameters(const std::vector<WeightEntry>& weights, const std::vector<std::string>& patterns);

}  // namespace prism
