// Vocabularies that are merged by score, as SentencePiece's BPE does, turned into a TokenizerFile.
//
//   TokenizerFile file = file_of_pieces(pieces, {.add_prefix = true}, source);
#pragma once

#include <string>
#include <vector>

#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

struct ScoredPiece {
  /// The types of SentencePiece. Normal pieces are what merging makes. Control and unknown pieces are special tokens.
  /// User-defined pieces are found in the text before merging. Byte pieces are spelled <0x00> to <0xFF>.
  enum class Kind { normal, unknown, control, user_defined, byte };

  std::string text;  ///< with U+2581 for spaces
  float score = 0;
  Kind kind = Kind::normal;
};

struct ScoredOptions {
  bool add_prefix = true;            ///< a space before every text (SentencePiece's add_dummy_prefix)
  bool remove_extra_spaces = false;  ///< no spaces around a text, and single ones inside it
};

/// Normal pieces of more bytes than this are refused, so that the work stays proportional to the input.
inline constexpr size_t kMostPieceBytes = 512;

/// Repeatedly joins the two neighbours that make the piece of highest score, leftmost first among equal scores. The
/// file has a merge for each way to cut a normal piece into two, and merges of equal scores share a rank.
/// @param pieces  by id.
/// @param source  name of the file in messages.
/// @throws InputError for pieces that are empty, there twice, not UTF-8 or too long, and for scores that are NaN.
TokenizerFile file_of_pieces(const std::vector<ScoredPiece>& pieces, const ScoredOptions& options,
                             const std::string& source);

}  // namespace prism
