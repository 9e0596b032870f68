// The contents of a `tokenizer.json`, checked but without any encoding logic.
//
//   TokenizerFile file = parse_tokenizer_file(read_file(path), path);
//   write_file(path, write_tokenizer_file(file));
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "prism/tokenizer/added_tokens.h"

namespace prism {

/// Upper bound of ids, since a table is allocated up to the largest one. No real vocabulary comes close.
inline constexpr int64_t kMaxTokens = int64_t{1} << 24;

struct TokenizerFile {
  struct VocabEntry {
    int32_t id;
    std::string spelling;  ///< in the byte alphabet
  };

  std::vector<VocabEntry> vocab;                            ///< by id
  std::vector<std::pair<std::string, std::string>> merges;  ///< spellings, by rank
  bool ignore_merges = false;                               ///< a piece that is itself a token is not split
  std::vector<AddedToken> added;                            ///< in the file's order
  nlohmann::json pre_tokenizer;
  nlohmann::json rest = nlohmann::json::object();        ///< all other members, kept for saving
  nlohmann::json model_rest = nlohmann::json::object();  ///< all other members of "model"
};

/// @param source  name of the file in messages.
/// @throws InputError naming the member that is missing, of the wrong type, or unsupported.
TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source);

/// The text of the file, readable by Hugging Face `tokenizers`. Merges are written as "a b", which every version reads.
std::string write_tokenizer_file(const TokenizerFile& file);

}  // namespace prism
