// Checkpoints of llama2.c (github.com/karpathy/llama2.c), as its programs run them.
//
//   const ModelFolder model = load_llama2c("stories15M.bin", torch::kFloat);   // with tokenizer.bin beside it
//
// All numbers are little-endian and 32 bits wide.
//
//   d_model  ffn width  layers  heads  kv_heads  vocabulary, negative if the head has weights of its own  context
//   embedding  attention norms  W_Q  W_K  W_V  W_O  norms of feed-forward parts  W_gate  W_down  W_up  final norm
//   cosines and sines of half a head's width for each position, which are not used  the head's weights, if any
//
// Each of these is float32, of all layers one after the other.
#pragma once

#include <torch/types.h>

#include <filesystem>

#include "prism/checkpoint/model_folder.h"

namespace prism {

/// Returns true for an existing file whose name ends in .bin.
bool is_llama2c(const std::filesystem::path& path);

/// Reads a language model and tokenizer.bin in the same folder. @param compute_type  dtype of matmuls.
/// @throws InputError for a header that is out of range, a file of another size than the header says, and a tokenizer
///         that is missing or of another size.
ModelFolder load_llama2c(const std::filesystem::path& path, torch::ScalarType compute_type);

}  // namespace prism
