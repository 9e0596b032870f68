// A tokenizer as the vocabulary of a GGUF file: the reverse of tokenizer_file_of().
//
//   GgmlVocabulary vocabulary = tokenizer.ggml_vocabulary();
//   add_unused_tokens(vocabulary, rows_of_the_embedding);
//   set_special_ids(vocabulary, tokenizer.special_ids());
#pragma once

#include <cstdint>

#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "prism/tokenizer/text_settings.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

/// A vocabulary whose tokenizer_file_of() gives every text the ids that `file` gives it, with two exceptions. GGUF has
/// no normalizer, so NFC is left out: texts that are in NFC have the same ids. Merges by score know no order among the
/// ways to make one token: see write_tokenizer_file(). Scores are minus the ranks of merges. Ids without a token are
/// those of add_unused_tokens(). Special ids, flags about them and the chat template are left open.
/// @throws InputError naming what GGUF cannot express: a pre-tokenizer that none of its names stands for, other
///         normalizers, added tokens with flags, and merges that scores do not give.
GgmlVocabulary ggml_vocabulary_of(const TokenizerFile& file);

/// Appends unused tokens, "[PAD123]" for id 123, until there are `count`. llama.cpp expects a token for each row of the
/// embedding. Source: llama.cpp, convert_hf_to_gguf.py.
void add_unused_tokens(GgmlVocabulary& vocabulary, int64_t count);

/// Sets the ids that open and end texts, and whether prompts are opened. The first end becomes eos. Of the others, eom
/// is one that is spelled so, and eot the first of the rest; llama.cpp finds further ones by their spelling.
/// @throws InputError if no id ends texts, which GGUF cannot say: llama.cpp then takes an id of its own.
void set_special_ids(GgmlVocabulary& vocabulary, const SpecialIds& ids);

}  // namespace prism
