// Models in GGUF files: the config out of the metadata, and the weights under the names of model folders.
//
//   const auto stored = open_gguf("model.gguf");
#pragma once

#include <filesystem>
#include <memory>

#include "prism/checkpoint/stored_model.h"

namespace prism {

/// Returns true for an existing file whose name ends in .gguf.
bool is_gguf(const std::filesystem::path& path);

/// A GGUF file. Its config has biases, norms of queries and keys and a head of its own if the file has their tensors.
/// Its weights become float32, with the rows of W_Q and W_K in the order for pairs (j, j + D/2). A file that has only a
/// vocabulary gives its tokenizer.
/// @throws InputError as GgufReader. config(): also for an architecture that no family has, metadata that are missing
/// or
///         out of range, experts, and heads that turn only in part. weights(): also for a tensor whose name the family
///         does not have, and two names of one tensor.
std::unique_ptr<StoredModel> open_gguf(const std::filesystem::path& path);

}  // namespace prism
