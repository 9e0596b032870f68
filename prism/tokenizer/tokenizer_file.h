// The contents of a `tokenizer.json`, checked but without any encoding logic.
//
//   TokenizerFile file = parse_tokenizer_file(read_file(path), path);
//   write_file(path, write_tokenizer_file(file));
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/tokenizer/added_tokens.h"
#include "prism/tokenizer/bpe/bpe_model.h"

namespace prism {

/// Upper bound of ids, since a table is allocated up to the largest one. No real vocabulary comes close.
inline constexpr int64_t kMaxTokens = int64_t{1} << 24;

struct TokenizerFile {
  /// How a vocabulary spells bytes. byte_level: each byte is a character of the byte alphabet, as in GPT-2.
  /// byte_fallback: tokens are text with U+2581 for spaces, and <0x00> to <0xFF> stand for the bytes of characters that
  /// have no token, as in Llama 2.
  enum class Kind { byte_level, byte_fallback };

  struct VocabEntry {
    int32_t id;
    std::string spelling;
  };

  Kind kind = Kind::byte_level;
  std::vector<VocabEntry> vocab;  ///< by id
  std::vector<Merge> merges;      ///< by rank
  std::vector<uint32_t> ranks;    ///< of the merges, if some of them share one; else empty
  bool ignore_merges = false;     ///< a piece that is itself a token is not split
  std::vector<AddedToken> added;  ///< in the file's order
  bool strips_space = false;      ///< decoding drops a space at the beginning of a text
  bool spells_spaces = false;     ///< decoding turns U+2581 into a space
  nlohmann::json normalizer;
  nlohmann::json pre_tokenizer;
  nlohmann::json rest = nlohmann::json::object();        ///< all other members, kept for saving
  nlohmann::json model_rest = nlohmann::json::object();  ///< all other members of "model"

  /// The spelling of an id of the vocabulary.
  const std::string& spelling(int32_t id) const;
};

/// The byte that a token of byte fallback such as <0x0A> stands for; std::nullopt for all other spellings.
std::optional<uint8_t> fallback_byte(std::string_view spelling);

/// @param source  name of the file in messages.
/// @throws InputError naming the member that is missing, of the wrong type, or unsupported.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

/// The id that the post_processor (TemplateProcessing) puts before a single text, if any.
std::optional<int32_t> opening_of_template(const TokenizerFile& file);
/// Makes the post_processor put this added token before each text, or none. What it did with ByteLevel stays.
void set_opening(TokenizerFile& file, const std::optional<int32_t>& id);

/// The text of the file, readable by Hugging Face `tokenizers`. Merges are written as "a b", which every version reads,
/// or as ["a", "b"] if a token contains a space.
///
/// Merges that share a rank are written with distinct ones, because the format knows nothing else; the member
/// "prism_rank_runs" of the model says how many follow each other with the same rank. `tokenizers` ignores it. Its ids
/// differ only where a text can make one token in two overlapping ways.
std::string write_tokenizer_file(const TokenizerFile& file);

}  // namespace prism
