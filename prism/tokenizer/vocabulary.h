// The tables that encoding and decoding look things up in, made from a TokenizerFile.
//
//   const Vocabulary vocabulary(file, normalizer, metaspace, source);
//   vocabulary.bytes[id]
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "prism/tokenizer/added_tokens.h"
#include "prism/tokenizer/bpe/bpe_model.h"
#include "prism/tokenizer/bpe/symbol_table.h"
#include "prism/tokenizer/normalize/normalizer.h"
#include "prism/tokenizer/split/metaspace.h"
#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

struct TextHash {
  using is_transparent = void;
  size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
};
using IdByText = std::unordered_map<std::string, int32_t, TextHash, std::equal_to<>>;

struct Vocabulary {
  /// @param source  name of the file in messages.
  /// @throws InputError naming the token that is missing, there twice, or at odds with another.
  Vocabulary(const TokenizerFile& file, const Normalizer& normalizer, const Metaspace& metaspace,
             const std::string& source);

  std::vector<std::string> bytes;  ///< by id, as decoding writes them; empty if no token has the id
  std::vector<uint8_t> special;    ///< by id
  IdByText model_ids, added_ids;   ///< by bytes; by spelling
  SymbolTable symbols;
  BpeModel model;
  /// Tokens that are searched in the text as it is; and those that are searched in the normalized text.
  AddedTokenMatcher in_text, in_normalized;

 private:
  void read_tokens(const TokenizerFile& file);
  void read_added(const TokenizerFile& file, const Normalizer& normalizer, const std::string& source);
  void read_symbols(const TokenizerFile& file, bool marks_spaces, bool split, const std::string& source);
};

}  // namespace prism
