// What the files beside a vocabulary say about texts: the ids that open and end them, and the template of chats.
//
//   const SpecialIds& ids = tokenizer.special_ids();
//   if (ids.opens_prompts) prompt.insert(prompt.begin(), *ids.opening);
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace prism {

class Tokenizer;
struct GgmlVocabulary;

struct SpecialIds {
  std::optional<int32_t> opening = {};  ///< opens a document: Llama's <s>, GPT-2's <|endoftext|>
  std::vector<int32_t> ends = {};       ///< each ends a document or a turn; first the one that files call eos
  bool opens_prompts = false;           ///< `opening` is put before a prompt that is not empty

  bool is_end(int64_t id) const;
  bool operator==(const SpecialIds&) const = default;
};

struct TextSettings {
  SpecialIds special_ids = {};
  std::map<std::string, std::string> special_tokens = {};  ///< what chat templates get: bos_token, eos_token, ...
  std::optional<std::string> chat_template = {};           ///< in Jinja
  std::optional<std::string> tool_template = {};           ///< of conversations with tools, if it is another

  bool operator==(const TextSettings&) const = default;
};

/// Of a tokenizer without other files, as prism trains it. The first token that exists of `<|endoftext|>`, `</s>`,
/// `<|end_of_text|>` and `<eos>` opens and ends documents, but `<s>` opens those that `</s>` ends. Prompts are left as
/// they are.
TextSettings default_settings(const Tokenizer& tokenizer);

/// The files of a folder that write_settings() writes.
constexpr const char* kSettingsNames[] = {"tokenizer_config.json", "chat_template.jinja"};

/// Of a model folder in the Hugging Face layout.
///
/// - `opening`: bos_token of tokenizer_config.json or special_tokens_map.json, else bos_token_id of
///   generation_config.json, else what the tokenizer's post_processor opens with.
/// - `ends`: eos_token and eos_token_id of all files together. Without generation_config.json, config.json gives the
///   ids.
/// - `opens_prompts`: add_bos_token, else whether the post_processor opens texts, else true for the tokenizer_class
///   LlamaTokenizer and its relatives, for which transformers opens texts.
/// - `chat_template`: chat_template.jinja, else the member of tokenizer_config.json: text, or the template "default" of
///   a list. `tool_template`: additional_chat_templates/tool_use.jinja, else the template "tool_use" of the list.
///
/// If no file names an opening or an end, it is that of default_settings().
/// @throws InputError for a token that is not in the vocabulary, an id beyond it, and members of a wrong type.
TextSettings read_settings(const Tokenizer& tokenizer, const std::filesystem::path& folder);

/// Of the metadata of a GGUF file. `ends`: eos_token_id, eot_token_id, eom_token_id, and the tokens that llama.cpp
/// takes as ends by their spelling: <|im_end|>, <|eot_id|>, <end_of_turn>, <|file_sep|>, .... `opens_prompts`:
/// add_bos_token, else what llama.cpp does for the model and pre-tokenizer. The ids 0, 1 and 2 are unknown, bos and eos
/// of the model "llama" if the file does not name them.
/// @param source  name of the file in messages.
/// @throws InputError for ids beyond the vocabulary and a pre-tokenizer that is not known.
TextSettings settings_of(const GgmlVocabulary& vocabulary, const std::string& source);

/// Writes tokenizer_config.json, which transformers needs to load tokenizer.json, and chat_template.jinja if there is a
/// template. Two templates are a list in tokenizer_config.json. read_settings() reads the same again, if
/// generation_config.json holds the ends beyond the first.
/// @param context  model_max_length; 0: unknown.
void write_settings(const std::filesystem::path& folder, const Tokenizer& tokenizer, int64_t context = 0);

}  // namespace prism
