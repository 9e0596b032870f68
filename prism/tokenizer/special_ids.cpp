#include "prism/tokenizer/special_ids.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"

namespace prism {
namespace {

constexpr size_t kShownValue = 60;

/// Source: github.com/ggml-org/llama.cpp, src/llama-vocab.cpp (special_eog_ids).
constexpr std::array<std::string_view, 13> kTurnEnds = {
    "<|im_end|>",           "<|eot_id|>",    "<|eom_id|>",         "<|end|>", "<|return|>", "<|endoftext|>",
    "<|end_of_text|>",      "<end_of_turn>", "<end_of_utterance>", "</s>",    "<eos>",      "<EOT>",
    "<｜end▁of▁sentence｜>"};

void add_end(SpecialIds& ids, std::optional<int64_t> id) {
  if (!id) return;
  const auto value = static_cast<int32_t>(*id);
  const auto place = std::lower_bound(ids.ends.begin(), ids.ends.end(), value);
  if (place == ids.ends.end() || *place != value) ids.ends.insert(place, value);
}

/// Where a member is, and whose file it is in, for messages.
struct Place {
  const Tokenizer& tokenizer;
  const Json* file;
  const char* file_name;
  const std::string& source;

  const Json* find(const char* name) const {
    if (file == nullptr || !file->is_object()) return nullptr;
    const auto member = file->find(name);
    return member == file->end() || member->is_null() ? nullptr : &*member;
  }
  /// The id of a token that is given as text, or as an object with its content.
  std::optional<int32_t> token(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    const Json content = value->is_object() ? value->value("content", Json()) : *value;
    PRISM_CHECK(content.is_string(), "tokenizer",
                "{}/{}: expected \"{}\" to be a token or an object with its content; found {}; correct it.", source,
                file_name, name, short_line(value->dump(), kShownValue));
    const auto id = tokenizer.find(content.get<std::string>());
    PRISM_CHECK(id, "tokenizer",
                "{}/{}: expected \"{}\" to be a token of the vocabulary; found {}, which is not; correct it.", source,
                file_name, name, short_line(content.dump(), kShownValue));
    return id;
  }
  /// An id, or a list of ids.
  std::vector<int32_t> ids(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return {};
    std::vector<int32_t> result;
    for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
      PRISM_CHECK(id.is_number_integer() && id >= 0 && id <= INT32_MAX, "tokenizer",
                  "{}/{}: expected \"{}\" to be an id of a token, or a list of ids; found {}; correct it.", source,
                  file_name, name, short_line(value->dump(), kShownValue));
      result.push_back(id.get<int32_t>());
    }
    return result;
  }
  std::optional<bool> flag(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    PRISM_CHECK(value->is_boolean(), "tokenizer", "{}/{}: expected \"{}\" to be true or false; found {}; correct it.",
                source, file_name, name, short_line(value->dump(), kShownValue));
    return value->get<bool>();
  }
};

/// Whether transformers opens texts for a tokenizer of this class that does not say so itself.
bool opens_by_class(const Json* name) {
  if (name == nullptr || !name->is_string()) return false;
  const auto text = name->get<std::string>();
  return text.starts_with("LlamaTokenizer") || text.starts_with("CodeLlamaTokenizer") ||
         text.starts_with("GemmaTokenizer");
}

}  // namespace

bool SpecialIds::is_end(int64_t id) const {
  return std::any_of(ends.begin(), ends.end(), [&](int32_t end) { return end == id; });
}

SpecialIds special_ids(const Tokenizer& tokenizer) {
  SpecialIds ids;
  ids.opening = tokenizer.end_of_text();
  add_end(ids, ids.opening);
  return ids;
}

SpecialIds special_ids(const Tokenizer& tokenizer, const SpecialIdFiles& files, const std::string& source) {
  const Place config{tokenizer, files.tokenizer_config, "tokenizer_config.json", source};
  const Place generation{tokenizer, files.generation_config, "generation_config.json", source};
  const Place map{tokenizer, files.special_tokens_map, "special_tokens_map.json", source};
  SpecialIds ids;
  ids.opening = config.token("bos_token");
  if (!ids.opening) ids.opening = map.token("bos_token");
  if (const auto given = generation.ids("bos_token_id"); !ids.opening && !given.empty()) ids.opening = given.front();
  if (!ids.opening) ids.opening = tokenizer.template_opening();
  add_end(ids, config.token("eos_token"));
  add_end(ids, map.token("eos_token"));
  for (const int32_t id : generation.ids("eos_token_id")) add_end(ids, id);
  const SpecialIds own = special_ids(tokenizer);
  if (!ids.opening) ids.opening = own.opening;
  if (ids.ends.empty()) ids.ends = own.ends;
  ids.opens_prompts = ids.opening && config.flag("add_bos_token")
                                         .value_or(tokenizer.template_opening().has_value() ||
                                                   opens_by_class(config.find("tokenizer_class")));
  return ids;
}

SpecialIds special_ids(const GgmlVocabulary& vocabulary, const std::string& source) {
  const auto count = static_cast<int64_t>(vocabulary.tokens.size());
  SpecialIds ids;
  for (const auto& id :
       {vocabulary.bos_token_id, vocabulary.eos_token_id, vocabulary.eot_token_id, vocabulary.eom_token_id}) {
    PRISM_CHECK(
        !id || (*id >= 0 && *id < count), "tokenizer",
        "{}: expected the special ids of tokenizer.ggml from 0 to {}; found {}; the file is damaged; restore it.",
        source, count - 1, *id);
  }
  add_end(ids, vocabulary.eos_token_id);
  add_end(ids, vocabulary.eot_token_id);
  add_end(ids, vocabulary.eom_token_id);
  for (size_t id = 0; id < vocabulary.types.size() && id < vocabulary.tokens.size(); ++id) {
    if (vocabulary.types[id] == static_cast<int32_t>(GgmlTokenType::control) &&
        std::find(kTurnEnds.begin(), kTurnEnds.end(), vocabulary.tokens[id]) != kTurnEnds.end())
      add_end(ids, static_cast<int64_t>(id));
  }
  const bool by_default = vocabulary.model == "llama" || find_ggml_pretokenizer(vocabulary.pre, source).opens_prompts;
  if (vocabulary.bos_token_id) ids.opening = static_cast<int32_t>(*vocabulary.bos_token_id);
  if (!ids.opening && !ids.ends.empty() && vocabulary.eos_token_id)
    ids.opening = static_cast<int32_t>(*vocabulary.eos_token_id);
  ids.opens_prompts = vocabulary.bos_token_id && vocabulary.add_bos_token.value_or(by_default);
  return ids;
}

}  // namespace prism
