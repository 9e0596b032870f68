// Checkpoints of llama2.c (github.com/karpathy/llama2.c), as its programs run them.
//
//   const auto stored = open_llama2c("stories15M.bin");   // with tokenizer.bin beside it
//
// All numbers are little-endian and 32 bits wide.
//
//   d_model  ffn width  layers  heads  kv_heads  vocabulary, negative if the head has weights of its own  context
//   embedding  attention norms  W_Q  W_K  W_V  W_O  norms of feed-forward parts  W_gate  W_down  W_up  final norm
//   cosines and sines of half a head's width for each position, which are not used  the head's weights, if any
//
// Each of these is float32, of all layers one after the other.
#pragma once

#include <filesystem>
#include <memory>

#include "prism/checkpoint/stored_model.h"

namespace prism {

/// Returns true for an existing file whose name ends in .bin.
bool is_llama2c(const std::filesystem::path& path);
/// Returns true if such a file begins as a checkpoint. The names of llama2.c's tokenizers end in .bin, too; they have a
/// score where a checkpoint has the width of feed-forward parts.
bool begins_as_llama2c(const std::filesystem::path& path);

/// A checkpoint, whose tokenizer is tokenizer.bin in the same folder.
/// @throws InputError, also when a part is read, for a header that is out of range, a file of another size than the
///         header says, and a tokenizer that is missing.
std::unique_ptr<StoredModel> open_llama2c(const std::filesystem::path& path);

}  // namespace prism
