// Where a long document is cut, so that the tokens of its pieces are those of the whole.
//
//   const std::string_view piece = rest.substr(0, piece_length(rest, 1 << 20));
#pragma once

#include <cstddef>
#include <string_view>

namespace prism {

/// A piece is at most this many times as long as requested.
constexpr size_t kLongestPiece = 4;

/// Where a document is cut if only `piece_bytes` of it are wanted.
///
/// The last position in [piece_bytes / 2, piece_bytes], else the first after it, that lies
///   before a space or tab that follows a character other than white space, or
///   after a single newline between two characters other than white space.
/// The pre-tokenizer patterns of GPT-2, Llama 3 and Qwen end a piece there whatever follows, and NFC joins nothing
/// across it, so the ids of the pieces are those of the whole document. They may differ if an added token contains
/// white space at that position or takes the white space after it (`rstrip`), if the tokenizer has no such pattern, or
/// if 4 * piece_bytes contain no such position; the cut is then between any two characters.
///
/// @param text  the rest of the document, or at least 4 * piece_bytes + 8 bytes of it.
size_t piece_length(std::string_view text, size_t piece_bytes);

}  // namespace prism
