// The vocabulary in the metadata of a GGUF file.
//
//   GgmlVocabulary vocabulary;  vocabulary.model = "llama";  vocabulary.tokens = ...;
//   const Tokenizer tokenizer = Tokenizer::from_ggml(vocabulary, "model.gguf");
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "prism/tokenizer/tokenizer_file.h"

namespace prism {

/// The members of `tokenizer.ggml`, under their names there.
/// Source: github.com/ggml-org/ggml, docs/gguf.md.
struct GgmlVocabulary {
  std::string model = {};  ///< "gpt2" (byte-level) or "llama" (merged by score)
  std::string pre = {};    ///< how text is split, e.g. "llama-bpe"; empty: "default"
  std::vector<std::string> tokens = {};
  std::vector<float> scores = {};        ///< of each token; for "llama"
  std::vector<int32_t> types = {};       ///< of each token: GgmlTokenType; empty: all are normal
  std::vector<std::string> merges = {};  ///< "a b"; for "gpt2"
  std::optional<int64_t> bos_token_id = {}, eos_token_id = {}, eot_token_id = {}, eom_token_id = {},
                         unknown_token_id = {}, padding_token_id = {};
  std::optional<bool> add_bos_token = {}, add_eos_token = {}, add_space_prefix = {}, remove_extra_whitespaces = {};
  std::optional<std::string> chat_template = {};  ///< `tokenizer.chat_template`; kept for others
  std::optional<std::string> tool_template = {};  ///< `tokenizer.chat_template.tool_use`, the same with tools

  /// Calls `visit` with each special id: its name here, its name in chat templates, the id.
  template <class Vocabulary, class Visit>
  static void visit_ids(Vocabulary& vocabulary, Visit visit) {
    visit("bos_token_id", "bos_token", vocabulary.bos_token_id);
    visit("eos_token_id", "eos_token", vocabulary.eos_token_id);
    visit("eot_token_id", "eot_token", vocabulary.eot_token_id);
    visit("eom_token_id", "eom_token", vocabulary.eom_token_id);
    visit("unknown_token_id", "unk_token", vocabulary.unknown_token_id);
    visit("padding_token_id", "pad_token", vocabulary.padding_token_id);
  }
};

enum class GgmlTokenType : int32_t { normal = 1, unknown, control, user_defined, unused, byte };

/// Text gets the ids that llama.cpp gives it. Differs: added tokens are searched as in `tokenizers`, the leftmost
/// first, where llama.cpp takes the longest of the whole text first; and merging never makes a control token.
/// @param source  name of the file in messages.
/// @throws InputError for arrays of different lengths, tokens that are there twice or not UTF-8, and for "llama" empty
///         ones, merges of unknown tokens, ids beyond the vocabulary, and for models and pre-tokenizers that are not
///         known.
TokenizerFile tokenizer_file_of(const GgmlVocabulary& vocabulary, const std::string& source);

/// @throws InputError for a special id beyond the vocabulary. @param source  name of the file in messages.
void check_special_ids(const GgmlVocabulary& vocabulary, const std::string& source);

}  // namespace prism
