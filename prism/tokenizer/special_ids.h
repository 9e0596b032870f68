// The ids that open and end texts, from what a model's files say.
//
//   const SpecialIds ids = special_ids(tokenizer, {.tokenizer_config = ..., .generation_config = ...});
//   if (ids.opens_prompts) prompt.insert(prompt.begin(), *ids.opening);
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/core/json.h"
#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

struct SpecialIds {
  std::optional<int32_t> opening = {};  ///< opens a document: Llama's <s>, GPT-2's <|endoftext|>
  std::vector<int32_t> ends = {};       ///< each of them ends a document or a turn; ascending, without duplicates
  bool opens_prompts = false;           ///< `opening` is put before a prompt that is not empty

  bool is_end(int64_t id) const;
  bool operator==(const SpecialIds&) const = default;
};

/// Of a tokenizer without other files, as prism trains it: end_of_text() opens and ends documents, and prompts are left
/// as they are.
SpecialIds special_ids(const Tokenizer& tokenizer);

/// The files of a model folder; null for those that it does not have.
struct SpecialIdFiles {
  const Json* tokenizer_config = nullptr;    ///< tokenizer_config.json
  const Json* generation_config = nullptr;   ///< generation_config.json
  const Json* special_tokens_map = nullptr;  ///< special_tokens_map.json
};

/// Of a model folder in the Hugging Face layout. `opening`: bos_token of tokenizer_config or special_tokens_map, else
/// bos_token_id of generation_config, else what the tokenizer's template opens with. `ends`: eos_token and eos_token_id
/// of all files together. `opens_prompts`: add_bos_token, else whether the tokenizer's template opens texts, else true
/// for the tokenizer_class LlamaTokenizer and its relatives, which transformers opens texts for. If no file names an
/// opening or an end, both are those of special_ids(tokenizer).
/// @param source  name of the folder in messages.
/// @throws InputError for a token that is not in the vocabulary, an id beyond it, and members of a wrong type.
SpecialIds special_ids(const Tokenizer& tokenizer, const SpecialIdFiles& files, const std::string& source);

/// Of the metadata of a GGUF file. `ends`: eos_token_id, eot_token_id, eom_token_id, and the control tokens that are
/// known to end a turn by their spelling: <|im_end|>, <|eot_id|>, <end_of_turn>, .... `opens_prompts`: add_bos_token,
/// else what llama.cpp does for the model and pre-tokenizer.
/// @param source  name of the file in messages.
/// @throws InputError for ids beyond the vocabulary and a pre-tokenizer that is not known.
SpecialIds special_ids(const GgmlVocabulary& vocabulary, const std::string& source);

}  // namespace prism
