// The vocabulary in the metadata of a GGUF file: reading and writing.
//
//   const std::optional<GgmlVocabulary> vocabulary = vocabulary_from_gguf(reader);
//   put_vocabulary(*vocabulary, pairs);
#pragma once

#include <optional>

#include "prism/formats/gguf.h"
#include "prism/formats/gguf_writer.h"
#include "prism/tokenizer/sources/ggml_vocabulary.h"

namespace prism {

/// The vocabulary of a file, or std::nullopt if it has none. @throws InputError for members of a wrong type.
std::optional<GgmlVocabulary> vocabulary_from_gguf(const GgufReader& reader);

/// Appends the members that the vocabulary has, with the types that llama.cpp expects.
void put_vocabulary(const GgmlVocabulary& vocabulary, GgufPairs& pairs);
/// Appends what llama.cpp needs in a file without a vocabulary.
void put_no_vocabulary(GgufPairs& pairs);

}  // namespace prism
