// Writes language models as GGUF files, which llama.cpp runs.
//
//   const auto mixed = save_gguf("out.gguf", *model.decoder, &*model.tokenizer, {.type = BlockType::q8_0});
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "prism/core/numbers/block_type.h"
#include "prism/models/trunk.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct GgufOptions {
  BlockType type = BlockType::f32;  ///< of matrices: f32, f16, bf16 or q8_0
  std::string name = {};            ///< general.name
};

/// Writes a file that load_model() and llama.cpp read. Norms and biases are F32. Ids of the embedding that the
/// tokenizer does not have become unused tokens, "[PAD123]". Atomic.
/// @param model      a language model, with its head.
/// @param tokenizer  may be null.
/// @return  the names of matrices that are F16, because Q8_0's blocks do not divide their rows.
/// @throws InputError for a model that no family of llama.cpp can express, a tokenizer that GGUF cannot express, and
///         weights beyond the range of the type; FailedError if the file cannot be written, as on a full disk.
std::vector<std::string> save_gguf(const std::filesystem::path& path, const Trunk& model, const Tokenizer* tokenizer,
                                   const GgufOptions& options);

}  // namespace prism
