// Estimates the memory of training before it starts.
//
//   check_training_memory(objective.weights(), recipe, torch::kBFloat16);
#pragma once

#include <torch/types.h>

#include <cstdint>
#include <vector>

#include "prism/layers/weight_list.h"
#include "prism/training/recipe.h"

namespace prism {

/// Bytes that a forward pass over `tokens` tokens keeps for its backward pass, counting the layers' matrix products:
///
///   tokens sum over matrices W [out, in] of layers: in e + (4 out if the output is added to the residual stream, else
///   e out)
///
/// where e is the bytes per value of `type`. This covers the inputs and outputs of products and the float32 residual
/// stream after each branch. With `recompute`, every layer keeps only the stream and one branch output, and one layer
/// at a time keeps everything. Softmax statistics, rotations and the logits (computed in chunks) are not counted; they
/// add a few percent.
int64_t activation_bytes(const std::vector<WeightEntry>& weights, int64_t tokens, torch::ScalarType type,
                         bool recompute);

/// Fails early where the system would otherwise kill the process.
/// @throws InputError if weights, gradients, moments and the activations of a batch do not fit into memory together.
void check_training_memory(const std::vector<WeightEntry>& weights, const Recipe& recipe, torch::ScalarType type);

}  // namespace prism
