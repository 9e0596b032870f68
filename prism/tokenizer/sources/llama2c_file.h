// llama2.c's `tokenizer.bin`: the pieces of a SentencePiece model with their scores.
//
//   TokenizerFile file = parse_llama2c_file(read_file("tokenizer.bin"), "tokenizer.bin");
#pragma once

#include <string>
#include <string_view>

#include "prism/tokenizer/text_settings.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

/// The layout: uint32, the length of the longest token; then for each token, to the end of the file: float32, its
/// score; int32, its length; its bytes, with spaces instead of U+2581. Token 0 is unknown, 1 opens and 2 ends a text, 3
/// to 258 are bytes, spelled <0x00> to <0xFF> or, in older files, U+0000 to U+00FF. All little-endian.
/// @param source  name of the file in messages.
/// @throws InputError for a file that is no such table.
/// Source: github.com/karpathy/llama2.c, tokenizer.py.
TokenizerFile parse_llama2c_file(std::string_view bytes, const std::string& source);

/// The special ids of such a file: <s> opens every text, and </s> or another <s> ends it.
/// Source: github.com/karpathy/llama2.c, run.c.
TextSettings llama2c_settings();

}  // namespace prism
