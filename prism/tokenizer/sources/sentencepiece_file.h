// SentencePiece's `tokenizer.model`: BPE with byte fallback, as Llama 2 and Mistral publish it.
//
//   TokenizerFile file = parse_sentencepiece_file(read_file(path), path);
#pragma once

#include <string>
#include <string_view>

#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

/// Text gets the ids that SentencePiece gives it. Control pieces such as <s> become special tokens, which SentencePiece
/// never finds in a text; encode with SpecialTokens::as_text to get its ids for text that spells one.
///
/// Differs: a normal piece is only made of pieces, so characters that occur in longer pieces but are none themselves
/// are bytes. Trained models have no such characters.
/// @param bytes   the file.
/// @param source  name of the file in messages.
/// @throws InputError for a damaged file; and naming what is not supported: unigram, word and char models, models
///         without byte fallback, normalization by a character map, unused pieces, spaces as suffixes or not marked,
///         and user-defined pieces with a dummy prefix, which no tokenizer.json can express.
/// Source of the format: github.com/google/sentencepiece, src/sentencepiece_model.proto.
TokenizerFile parse_sentencepiece_file(std::string_view bytes, const std::string& source);

}  // namespace prism
