#include "prism/tokenizer/tokenizer_file.h"

#include <algorithm>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

using nlohmann::json;

const json& member(const json& object, const char* name, json::value_t type, const std::string& source) {
  const auto found = object.find(name);
  PRISM_CHECK(found != object.end(), "tokenizer", "{}: expected a member \"{}\"; found none; name a tokenizer.json.",
              source, name);
  PRISM_CHECK(found->type() == type, "tokenizer", "{}: expected \"{}\" to be of type {}; found {}; correct it.", source,
              name, json(type).type_name(), found->type_name());
  return *found;
}

int32_t token_id(const json& value, const std::string& token, const std::string& source) {
  PRISM_CHECK(value.is_number_integer() && value >= 0 && value < kMaxTokens, "tokenizer",
              "{}: expected the id of token {} to be a whole number from 0 to {}; found {}; correct it.", source,
              json(token).dump(), kMaxTokens - 1, value.dump());
  return value.get<int32_t>();
}

/// Rejects unsupported settings that would change ids.
void check_model(const json& model, const std::string& source) {
  const json type = model.value("type", json("BPE"));
  PRISM_CHECK(
      type == "BPE", "tokenizer",
      "{}: expected a model of type \"BPE\"; found {}; other kinds are not supported, choose another tokenizer.",
      source, type.dump());
  const auto require_none = [&](const char* name, const json& none) {
    const auto value = model.find(name);
    PRISM_CHECK(
        value == model.end() || value->is_null() || *value == none, "tokenizer",
        "{}: expected the model's \"{}\" to be null or {}; found {}; it is not supported, choose another tokenizer.",
        source, name, none.dump(), value->dump());
  };
  require_none("dropout", 0.0);
  require_none("continuing_subword_prefix", "");
  require_none("end_of_word_suffix", "");
}

void check_not_empty(const std::string& content, const std::string& source) {
  PRISM_CHECK(!content.empty(), "tokenizer", "{}: expected tokens of at least one byte; found an empty one; remove it.",
              source);
}

void read_vocab(const json& vocab, const std::string& source, TokenizerFile& file) {
  file.vocab.reserve(vocab.size());
  for (const auto& [spelling, id] : vocab.items()) {
    check_not_empty(spelling, source);
    file.vocab.push_back({token_id(id, spelling, source), spelling});
  }
  std::sort(file.vocab.begin(), file.vocab.end(), [](const auto& a, const auto& b) { return a.id < b.id; });
  for (size_t i = 1; i < file.vocab.size(); ++i) {
    PRISM_CHECK(file.vocab[i].id != file.vocab[i - 1].id, "tokenizer",
                "{}: expected every token to have a unique id; found {} and {} at {}; change one of them.", source,
                json(file.vocab[i - 1].spelling).dump(), json(file.vocab[i].spelling).dump(), file.vocab[i].id);
  }
}

void read_merges(const json& merges, const std::string& source, TokenizerFile& file) {
  file.merges.reserve(merges.size());
  for (const auto& merge : merges) {
    if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      file.merges.emplace_back(merge[0].get<std::string>(), merge[1].get<std::string>());
      continue;
    }
    const std::string text = merge.is_string() ? merge.get<std::string>() : "";
    const size_t space = text.find(' ');
    PRISM_CHECK(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, "tokenizer",
                "{}: expected merge {} to be \"a b\" or [\"a\", \"b\"]; found {}; correct it.", source,
                file.merges.size(), merge.dump());
    file.merges.emplace_back(text.substr(0, space), text.substr(space + 1));
  }
}

void read_added(const json& list, const std::string& source, TokenizerFile& file) {
  for (const auto& row : list) {
    PRISM_CHECK(row.is_object(), "tokenizer", "{}: expected every added token to be an object; found {}; correct it.",
                source, row.dump());
    AddedToken token;
    token.content = member(row, "content", json::value_t::string, source).get<std::string>();
    check_not_empty(token.content, source);
    PRISM_CHECK(row.contains("id"), "tokenizer",
                "{}: expected the added token {} to have an id; found none; give it one.", source,
                json(token.content).dump());
    token.id = token_id(row["id"], token.content, source);
    const auto flag = [&](const char* name) {
      const auto value = row.find(name);
      PRISM_CHECK(value == row.end() || value->is_boolean(), "tokenizer",
                  "{}: expected \"{}\" of the added token {} to be true or false; found {}; correct it.", source, name,
                  json(token.content).dump(), value->dump());
      return value != row.end() && value->get<bool>();
    };
    token.special = flag("special");
    token.single_word = flag("single_word");
    token.lstrip = flag("lstrip");
    token.rstrip = flag("rstrip");
    token.normalized = flag("normalized");
    file.added.push_back(std::move(token));
  }
}

/// Returns true if a post-processor leaves the ids unchanged; it may only trim offsets.
bool adds_nothing(const json& processor) {
  if (processor.is_null()) return true;
  const json type = processor.is_object() ? processor.value("type", json()) : json();
  if (type != "Sequence") return type == "ByteLevel";
  const json parts = processor.value("processors", json());
  return parts.is_array() && std::all_of(parts.begin(), parts.end(), adds_nothing);
}

constexpr size_t kMostShown = 80;

/// Rejects settings that change the ids of a text after encoding.
void check_after(const json& root, const std::string& source) {
  for (const char* name : {"truncation", "padding"})
    PRISM_CHECK(root.value(name, json()).is_null(), "tokenizer",
                "{}: expected \"{}\" to be null; found {}, which would change ids; set it to null.", source, name,
                short_line(root.at(name).dump(), kMostShown));
  const json processor = root.value("post_processor", json());
  PRISM_CHECK(adds_nothing(processor), "tokenizer",
              "{}: expected a post_processor that adds no tokens, ByteLevel or null; found {}; set it to null: prism "
              "opens documents by itself.",
              source, short_line(processor.dump(), kMostShown));
}

void check_kinds(const json& root, const std::string& source) {
  const auto normalizer = root.find("normalizer");
  if (normalizer != root.end() && !normalizer->is_null()) {
    const json type = normalizer->is_object() ? normalizer->value("type", json()) : json();
    throw InputError("tokenizer",
                     fmt::format("{}: expected no normalizer; found {}; tokenizers that rewrite text before "
                                 "they cut it are not supported; choose another tokenizer.",
                                 source, type.dump()));
  }
  const json decoder = root.value("decoder", json());
  const json type = decoder.is_object() ? decoder.value("type", json()) : json();
  PRISM_CHECK(type == "ByteLevel", "tokenizer",
              "{}: expected a decoder of type \"ByteLevel\"; found {}; other kinds are not supported, choose another "
              "tokenizer.",
              source, type.dump());
}

std::string merge_text(const std::pair<std::string, std::string>& merge) {
  return json(merge.first + " " + merge.second).dump();
}

std::string added_text(const AddedToken& token) {
  return fmt::format(
      R"({{"id":{},"content":{},"single_word":{},"lstrip":{},"rstrip":{},"normalized":{},"special":{}}})", token.id,
      json(token.content).dump(), token.single_word, token.lstrip, token.rstrip, token.normalized, token.special);
}

/// The texts of all rows, one per line.
template <class Rows, class Text>
std::string join_rows(const Rows& rows, const char* indent, Text text) {
  std::string joined;
  for (const auto& row : rows) {
    joined += joined.empty() ? "\n" : ",\n";
    joined += indent;
    joined += text(row);
  }
  return joined;
}

}  // namespace

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source) {
  // Not Json: its objects are lists, so each lookup in the vocabulary would take linear time.
  auto root = parse_json<json>(text, source);
  PRISM_CHECK(root.is_object(), "tokenizer", "{}: expected an object; found {}; name a tokenizer.json.", source,
              root.type_name());
  const json& model = member(root, "model", json::value_t::object, source);
  check_model(model, source);
  check_kinds(root, source);
  check_after(root, source);

  TokenizerFile file;
  read_vocab(member(model, "vocab", json::value_t::object, source), source, file);
  read_merges(member(model, "merges", json::value_t::array, source), source, file);
  const auto ignore = model.find("ignore_merges");
  file.ignore_merges = ignore != model.end() && ignore->is_boolean() && ignore->get<bool>();
  if (const auto added = root.find("added_tokens"); added != root.end() && !added->is_null())
    read_added(member(root, "added_tokens", json::value_t::array, source), source, file);
  file.pre_tokenizer = root.value("pre_tokenizer", json());

  for (const auto& [name, value] : model.items()) {
    if (name != "vocab" && name != "merges" && name != "ignore_merges") file.model_rest[name] = value;
  }
  for (const char* name : {"model", "added_tokens", "pre_tokenizer"}) root.erase(name);
  file.rest = std::move(root);
  return file;
}

std::string write_tokenizer_file(const TokenizerFile& file) {
  // The order of members is that of Hugging Face, for people who read the file.
  const auto rest = [&](const char* name, const char* otherwise) {
    const auto value = file.rest.find(name);
    return fmt::format("  \"{}\": {},\n", name, value == file.rest.end() ? otherwise : value->dump());
  };
  std::string text = "{\n" + rest("version", "\"1.0\"") + rest("truncation", "null") + rest("padding", "null");
  text += "  \"added_tokens\": [" + join_rows(file.added, "    ", added_text) + "\n  ],\n";
  text += rest("normalizer", "null") + "  \"pre_tokenizer\": " + file.pre_tokenizer.dump() + ",\n";
  text += rest("post_processor", "null") + rest("decoder", "null") + "  \"model\": {\n    \"type\": \"BPE\",\n";
  for (const auto& [name, value] : file.model_rest.items()) {
    if (name != "type") text += fmt::format("    {}: {},\n", json(name).dump(), value.dump());
  }
  text += fmt::format("    \"ignore_merges\": {},\n    \"vocab\": {{", file.ignore_merges);
  text += join_rows(file.vocab, "      ",
                    [](const auto& entry) { return fmt::format("{}: {}", json(entry.spelling).dump(), entry.id); });
  text += "\n    },\n    \"merges\": [" + join_rows(file.merges, "      ", merge_text) + "\n    ]\n  }\n}\n";
  return text;
}

}  // namespace prism
