#include "prism/tokenizer/text_settings.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {
namespace {

constexpr size_t kShownValue = 60;

/// Tokens that end texts by their spelling. Source: github.com/ggml-org/llama.cpp, src/llama-vocab.cpp
/// (special_eog_ids), also of the two lists below.
constexpr std::string_view kTurnEnds[] = {"<|im_end|>",    "<|eot_id|>",
                                          "<|eom_id|>",    "<|end|>",
                                          "<|return|>",    "<|call|>",
                                          "<|calls|>",     "<|flush|>",
                                          "<|endoftext|>", "<|end_of_text|>",
                                          "</s>",          "<eos>",
                                          "<end_of_turn>", "<end_of_utterance>",
                                          "<EOT>",         "_<EOT>",
                                          "[EOT]",         "[EOS]",
                                          "<turn|>",       "<|tool_response>",
                                          "[e~[",          "<｜end▁of▁sentence｜>"};
/// Of each row, which is about filling in code, the first token of the vocabulary ends texts.
constexpr std::array<std::string_view, 5> kFileEnds[] = {
    {"<|fim_pad|>", "<fim-pad>", "<fim_pad>", "<PAD>", "[PAD]"},
    {"<|fim_repo|>", "<|repo_name|>", "<fim-repo>", "<REPO>", "<reponame>"},
    {"<|file_sep|>"}};
/// The first token of a row is an ordinary one where the others end texts too.
constexpr std::array<std::string_view, 3> kOrdinary[] = {{"<|end|>", "<|return|>", "<|call|>"},
                                                         {"<|end|>", "<|calls|>", "<|flush|>"},
                                                         {"</s>", "<|tool_response>", "<|tool_response>"}};

constexpr const char* kToolTemplate = "tool_use";  ///< transformers' name of it
constexpr const char *kConfigName = kSettingsNames[0], *kTemplateName = kSettingsNames[1];

void add_end(SpecialIds& ids, std::optional<int64_t> id) {
  if (id && !ids.is_end(*id)) ids.ends.push_back(static_cast<int32_t>(*id));
}

/// A JSON file of a folder, whose members name tokens.
class TokenMembers {
 public:
  TokenMembers(const Tokenizer& tokenizer, const std::filesystem::path& file)
      : tokenizer_(tokenizer), source_(file.string()), is_there_(is_there(file)) {
    if (!is_there_) return;
    json_ = read_json(source_);
    PRISM_CHECK(json_.is_object(), "tokenizer", "{}: expected an object; found {}; restore the file.", source_,
                json_.type_name());
  }

  bool exists() const { return is_there_; }
  const Json& json() const { return json_; }
  const Json* find(const char* name) const {
    const auto member = json_.find(name);
    return member == json_.end() || member->is_null() ? nullptr : &*member;
  }
  /// A token that is given as text, or as an object with its content.
  std::optional<std::string> token(const std::string& name) const {
    const Json* value = find(name.c_str());
    if (value == nullptr) return std::nullopt;
    const Json content = value->is_object() ? value->value("content", Json()) : *value;
    PRISM_CHECK(content.is_string(), "tokenizer",
                "{}: expected \"{}\" to be a token or an object with its content; found {}; correct it.", source_, name,
                shown(*value));
    return content.get<std::string>();
  }
  std::optional<int32_t> token_id(const char* name) const {
    const auto text = token(name);
    if (!text) return std::nullopt;
    const auto id = tokenizer_.find(*text);
    PRISM_CHECK(id, "tokenizer",
                "{}: expected \"{}\" to be a token of the vocabulary; found {}, which is not; name the files of the "
                "same tokenizer.",
                source_, name, shown(*text));
    return id;
  }
  /// An id, or a list of ids.
  std::vector<int32_t> ids(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return {};
    std::vector<int32_t> result;
    for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
      PRISM_CHECK(id.is_number_integer() && id >= 0 && id < tokenizer_.vocab_size(), "tokenizer",
                  "{}: expected \"{}\" to be the id of a token, 0 to {}, or a list of ids; found {}; correct it.",
                  source_, name, tokenizer_.vocab_size() - 1, shown(*value));
      result.push_back(id.get<int32_t>());
    }
    return result;
  }
  std::optional<bool> flag(const char* name) const {
    const Json* value = find(name);
    if (value == nullptr) return std::nullopt;
    PRISM_CHECK(value->is_boolean(), "tokenizer", "{}: expected \"{}\" to be true or false; found {}; correct it.",
                source_, name, shown(*value));
    return value->get<bool>();
  }
  /// chat_template: text, or a list of named ones.
  std::optional<std::string> chat_template() const {
    const Json* value = find("chat_template");
    if (value == nullptr || value->is_string()) return value ? std::optional(value->get<std::string>()) : std::nullopt;
    if (auto text = named_template("default")) return text;
    throw InputError("tokenizer", fmt::format("{}: expected chat_template to be text, or a list with a template named "
                                              "\"default\"; found {}; correct it.",
                                              source_, shown(*value)));
  }
  /// A template of a list of named ones.
  std::optional<std::string> named_template(const char* name) const {
    const Json* list = find("chat_template");
    if (list == nullptr || !list->is_array()) return std::nullopt;
    for (const Json& row : *list)
      if (row.is_object() && row.value("name", Json()) == name && row.value("template", Json()).is_string())
        return row["template"].get<std::string>();
    return std::nullopt;
  }

 private:
  static std::string shown(const Json& value) { return short_line(to_text(value), kShownValue); }

  const Tokenizer& tokenizer_;
  std::string source_;
  bool is_there_;
  Json json_ = Json::object();
};

/// Whether transformers opens texts for a tokenizer of this class that does not say so itself.
bool opens_by_class(const Json* name) {
  if (name == nullptr || !name->is_string()) return false;
  const auto text = name->get<std::string>();
  return text.starts_with("LlamaTokenizer") || text.starts_with("CodeLlamaTokenizer") ||
         text.starts_with("GemmaTokenizer");
}

/// bos_token, eos_token and the like of tokenizer_config.json, or else of special_tokens_map.json.
std::map<std::string, std::string> named_tokens(const TokenMembers& config, const TokenMembers& map) {
  std::map<std::string, std::string> found;
  for (const char* name :
       {"bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token"}) {
    auto text = config.token(name);
    if (!text) text = map.token(name);
    if (text) found[name] = *text;
  }
  return found;
}

template <class List>
bool has_text(const List& list, std::string_view text) {
  return std::find(std::begin(list), std::end(list), text) != std::end(list);
}

/// Adds what llama.cpp takes as ends by the spelling, whatever the token's type.
void add_ends_by_spelling(const std::vector<std::string>& tokens, SpecialIds& ids) {
  bool has_row[std::size(kFileEnds)] = {};
  for (size_t id = 0; id < tokens.size(); ++id) {
    if (tokens[id].empty()) continue;  // an id without a token
    bool ends = has_text(kTurnEnds, tokens[id]);
    for (size_t row = 0; row < std::size(kFileEnds); ++row)
      if (has_text(kFileEnds[row], tokens[id])) ends = !std::exchange(has_row[row], true) || ends;
    if (ends) add_end(ids, static_cast<int64_t>(id));
  }
  const auto ends_at = [&](std::string_view text) {
    return std::find_if(ids.ends.begin(), ids.ends.end(),
                        [&](int32_t id) { return tokens[static_cast<size_t>(id)] == text; });
  };
  for (const auto& row : kOrdinary)
    if (std::all_of(row.begin(), row.end(), [&](std::string_view text) { return ends_at(text) != ids.ends.end(); }))
      ids.ends.erase(ends_at(row[0]));
}

/// The id, or for the model "llama" the one that llama.cpp takes if a file names none, provided the vocabulary has it.
/// Source: src/llama-vocab.cpp.
std::optional<int64_t> id_or(std::optional<int64_t> id, int64_t otherwise, const GgmlVocabulary& vocabulary) {
  if (id || vocabulary.model != "llama" || otherwise >= std::ssize(vocabulary.tokens)) return id;
  return otherwise;
}

}  // namespace

bool SpecialIds::is_end(int64_t id) const {
  return std::any_of(ends.begin(), ends.end(), [&](int32_t end) { return end == id; });
}

TextSettings default_settings(const Tokenizer& tokenizer) {
  for (const char* name : {"<|endoftext|>", "</s>", "<|end_of_text|>", "<eos>"}) {
    const auto end = tokenizer.find(name);
    if (!end || !tokenizer.is_added(*end)) continue;
    const auto pair = tokenizer.find("<s>");
    const auto opening = name == std::string_view("</s>") && pair && tokenizer.is_added(*pair) ? *pair : *end;
    return {.special_ids = {.opening = opening, .ends = {*end}},
            .special_tokens = {{"bos_token", std::string(tokenizer.bytes(opening))}, {"eos_token", name}}};
  }
  return {};
}

TextSettings read_settings(const Tokenizer& tokenizer, const std::filesystem::path& folder) {
  const TokenMembers config(tokenizer, folder / kConfigName), map(tokenizer, folder / "special_tokens_map.json"),
      own(tokenizer, folder / "generation_config.json");
  const TokenMembers generation = own.exists() ? own : TokenMembers(tokenizer, folder / "config.json");
  TextSettings settings = default_settings(tokenizer);
  if (config.exists() || map.exists()) settings.special_tokens = named_tokens(config, map);
  SpecialIds ids;
  ids.opening = config.token_id("bos_token");
  if (!ids.opening) ids.opening = map.token_id("bos_token");
  if (const auto given = generation.ids("bos_token_id"); !ids.opening && !given.empty()) ids.opening = given.front();
  if (!ids.opening) ids.opening = tokenizer.template_opening();
  add_end(ids, config.token_id("eos_token"));
  add_end(ids, map.token_id("eos_token"));
  for (const int32_t id : generation.ids("eos_token_id")) add_end(ids, id);
  if (!ids.opening) ids.opening = settings.special_ids.opening;
  if (ids.ends.empty()) ids.ends = settings.special_ids.ends;
  ids.opens_prompts = ids.opening && config.flag("add_bos_token")
                                         .value_or(tokenizer.template_opening().has_value() ||
                                                   opens_by_class(config.find("tokenizer_class")));
  settings.special_ids = ids;
  const auto file = folder / kTemplateName, tool_file = folder / "additional_chat_templates/tool_use.jinja";
  if (is_there(file) || is_there(tool_file)) {
    if (is_there(file)) settings.chat_template = read_file(file);
    if (is_there(tool_file)) settings.tool_template = read_file(tool_file);
  } else {
    settings.chat_template = config.chat_template();
    settings.tool_template = config.named_template(kToolTemplate);
  }
  return settings;
}

TextSettings settings_of(const GgmlVocabulary& vocabulary, const std::string& source) {
  check_special_ids(vocabulary, source);
  const auto unknown = id_or(vocabulary.unknown_token_id, 0, vocabulary);
  const auto bos = id_or(vocabulary.bos_token_id, 1, vocabulary), eos = id_or(vocabulary.eos_token_id, 2, vocabulary);
  TextSettings settings{.chat_template = vocabulary.chat_template, .tool_template = vocabulary.tool_template};
  GgmlVocabulary::visit_ids(vocabulary, [&](const char*, std::string_view name, const std::optional<int64_t>& given) {
    const auto id = name == "bos_token" ? bos : name == "eos_token" ? eos : name == "unk_token" ? unknown : given;
    if (id) settings.special_tokens[std::string(name)] = vocabulary.tokens[static_cast<size_t>(*id)];
  });
  SpecialIds& ids = settings.special_ids;
  add_end(ids, eos);
  add_end(ids, vocabulary.eot_token_id);
  add_end(ids, vocabulary.eom_token_id);
  add_ends_by_spelling(vocabulary.tokens, ids);
  const bool by_default = vocabulary.model == "llama" || find_ggml_pretokenizer(vocabulary.pre, source).opens_prompts;
  const auto opening = bos ? bos : eos;
  if (opening) ids.opening = static_cast<int32_t>(*opening);
  ids.opens_prompts = bos && vocabulary.add_bos_token.value_or(by_default);
  return settings;
}

void write_settings(const std::filesystem::path& folder, const Tokenizer& tokenizer, int64_t context) {
  const TextSettings& settings = tokenizer.settings();
  Json json = {{"tokenizer_class", "PreTrainedTokenizerFast"}};
  if (context > 0) json["model_max_length"] = context;
  json["clean_up_tokenization_spaces"] = false;
  for (const auto& [name, text] : settings.special_tokens) json[name] = text;
  const auto& ids = settings.special_ids;
  if (ids.opening && !json.contains("bos_token")) json["bos_token"] = tokenizer.bytes(*ids.opening);
  if (!ids.ends.empty() && !json.contains("eos_token")) json["eos_token"] = tokenizer.bytes(ids.ends.front());
  if (ids.opens_prompts != tokenizer.template_opening().has_value()) json["add_bos_token"] = ids.opens_prompts;
  const bool has_two = settings.chat_template && settings.tool_template;
  if (has_two)
    json["chat_template"] = {{{"name", "default"}, {"template", *settings.chat_template}},
                             {{"name", kToolTemplate}, {"template", *settings.tool_template}}};
  write_file(folder / kConfigName, to_text(json, 2) + "\n");
  if (settings.chat_template && !has_two) write_file(folder / kTemplateName, *settings.chat_template);
}

}  // namespace prism
