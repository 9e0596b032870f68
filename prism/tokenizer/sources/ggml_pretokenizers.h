// The pre-tokenizers that GGUF files name in `tokenizer.ggml.pre`.
//
//   const GgmlPretokenizer& row = find_ggml_pretokenizer("llama-bpe", source);
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "prism/tokenizer/split/pretokenizer.h"

namespace prism {

struct GgmlPretokenizer {
  std::vector<std::string_view> names;
  std::vector<std::string_view> patterns;  ///< each splits the pieces of the one before into its matches and the rest
  bool ignores_merges = false;             ///< a piece that is itself a token is not split
  bool opens_prompts = false;              ///< unless the file says otherwise
};

/// @param name    empty: "default".
/// @param source  name of the file in messages.
/// @throws InputError for an unknown name, with the known ones.
/// Source: github.com/ggml-org/llama.cpp, src/llama-vocab.cpp (llm_tokenizer_bpe and llama_vocab::impl::load). Where it
/// quotes the pattern of the model's own tokenizer.json beside one that std::regex can run, the quoted one is taken. A
/// final `\s+` is left out there, but what it would match is a piece anyway.
const GgmlPretokenizer& find_ggml_pretokenizer(std::string_view name, const std::string& source);

/// The first name of the row that splits texts in the same steps; std::nullopt if there is none.
/// @param ignores_merges  a piece that is itself a token is not split.
std::optional<std::string> ggml_pretokenizer_name(const Pretokenizer& pretokenizer, bool ignores_merges);

/// The `pre_tokenizer` member of a tokenizer.json.
nlohmann::json pretokenizer_json(const GgmlPretokenizer& pretokenizer);

}  // namespace prism
