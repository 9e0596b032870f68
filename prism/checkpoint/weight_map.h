// The weights of a model as the tensors of its file.
#pragma once

#include <vector>

#include "prism/checkpoint/tensor_file.h"
#include "prism/layers/weight_list.h"

namespace prism {

/// One row a tensor, in the order of the file: of fused weights (q, k, v; gate, up) views of their rows, so that the
/// list serves saving and loading.
std::vector<NamedTensor> file_tensors(const std::vector<WeightEntry>& weights);
/// Their gradients under the same names, in the same order; undefined where there is none.
std::vector<NamedTensor> file_gradients(const std::vector<WeightEntry>& weights);

}  // namespace prism
