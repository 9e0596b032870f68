// Which tensor of a model folder is which part of a decoder: one table per family of names.
#pragma once

#include "prism/checkpoint/tensor_file.h"
#include "prism/models/decoder.h"

namespace prism {

/// Llama's names, and names in their manner for what Llama does not have (learned positions, biases, more than one
/// hidden layer). Fused weights appear as views of their rows (q, k, v; gate, up), so the table serves saving and
/// loading.
std::vector<NamedTensor> llama_weights(Decoder decoder);

}  // namespace prism
