// The memory that training takes, known before it takes it.
//
//   check_training_memory(objective.weights(), recipe, torch::kBFloat16);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "prism/layers/weight_list.h"
#include "prism/training/recipe.h"

namespace prism {

/// Bytes that a forward pass over `tokens` tokens keeps for its backward pass, from the products of the layers alone:
///
///   tokens sum over matrices W [out, in] of layers: in e + (out 4 where it is added to the residual stream, else out
///   e)
///
/// with e bytes a value of `type`: inputs and outputs of products, and the float32 residual stream after each branch.
/// Recomputed layers keep the stream and the branch before it, and one layer at a time all of its own. Softmax
/// statistics, rotations and logits, which are computed in chunks, are not counted: a few percent.
int64_t activation_bytes(const std::vector<WeightEntry>& weights, int64_t tokens, torch::ScalarType type,
                         bool recompute);

/// What the system would otherwise answer by killing the process.
/// @throws InputError if weights, gradients, moments and the activations of a batch do not fit into memory together.
void check_training_memory(const std::vector<WeightEntry>& weights, const Recipe& recipe, torch::ScalarType type);

}  // namespace prism
