// Maps the weights of a model to the tensors of its file.
#pragma once

#include <vector>

#include "prism/checkpoint/tensor_file.h"
#include "prism/layers/weight_list.h"

namespace prism {

/// The tensors of a model's file, in the file's order. Fused weights (q, k, v; gate, up) appear as views of their rows,
/// so the list serves both saving and loading.
std::vector<NamedTensor> file_tensors(const std::vector<WeightEntry>& weights);
/// Their gradients under the same names and in the same order; undefined tensors where there is none.
std::vector<NamedTensor> file_gradients(const std::vector<WeightEntry>& weights);

}  // namespace prism
