#include "prism/tokenizer/tokenizer_file.h"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/space_marker.h"

namespace prism {
namespace {

using nlohmann::json;

constexpr size_t kMostShown = 80;

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

/// The two spellings that a row of "merges" joins.
std::pair<std::string, std::string> merge_parts(const json& merge, size_t rank, const std::string& source) {
  if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string())
    return {merge[0].get<std::string>(), merge[1].get<std::string>()};
  const std::string text = merge.is_string() ? merge.get<std::string>() : "";
  const size_t space = text.find(' ');
  PRISM_CHECK(space != std::string::npos && text.find(' ', space + 1) == std::string::npos, "tokenizer",
              "{}: expected merge {} to be \"a b\" or [\"a\", \"b\"]; found {}; correct it.", source, rank,
              short_line(merge.dump(), kMostShown));
  return {text.substr(0, space), text.substr(space + 1)};
}

void read_merges(const json& merges, const std::string& source, TokenizerFile& file) {
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(file.vocab.size());
  for (const auto& entry : file.vocab) ids.emplace(entry.spelling, entry.id);
  file.merges.reserve(merges.size());
  for (const auto& row : merges) {
    const size_t rank = file.merges.size();
    const auto [left, right] = merge_parts(row, rank, source);
    const auto id_of = [&, &first = left, &second = right](const std::string& spelling) {
      const auto found = ids.find(spelling);
      PRISM_CHECK(found != ids.end(), "tokenizer",
                  "{}: expected merge {} ({} {}) to join tokens of the vocabulary into one; found one that is not in "
                  "it; add it to the vocabulary, or remove the merge.",
                  source, rank, short_line(first, kMostShown), short_line(second, kMostShown));
      return found->second;
    };
    file.merges.push_back({id_of(left), id_of(right), id_of(left + right)});
  }
}

/// The ranks that "prism_rank_runs" gives the merges.
void read_ranks(const json& model, const std::string& source, TokenizerFile& file) {
  const auto runs = model.find("prism_rank_runs");
  if (runs == model.end() || runs->is_null()) return;
  uint32_t rank = 0;
  for (const auto& run : runs->is_array() ? *runs : json::array()) {
    const bool fits = run.is_number_integer() && run >= 1 && run <= file.merges.size() - file.ranks.size();
    if (!fits) break;
    file.ranks.insert(file.ranks.end(), run.get<size_t>(), rank++);
  }
  PRISM_CHECK(file.ranks.size() == file.merges.size(), "tokenizer",
              "{}: expected \"prism_rank_runs\" to list the lengths of runs of {} merges; found other ones; remove it, "
              "or write the file again.",
              source, file.merges.size());
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

/// Returns true if all that a post-processor does is to trim offsets and to put special tokens around a text. encode()
/// leaves the latter to its caller; see SpecialIds::opens_prompts.
bool adds_special_tokens_only(const json& processor) {
  if (processor.is_null()) return true;
  const json type = processor.is_object() ? processor.value("type", json()) : json();
  if (type != "Sequence") return type == "ByteLevel" || type == "TemplateProcessing";
  const json parts = processor.value("processors", json());
  return parts.is_array() && std::all_of(parts.begin(), parts.end(), [](const json& part) {
           return part.is_object() && part.value("type", json()) != "Sequence" && adds_special_tokens_only(part);
         });
}

/// Rejects settings that change the ids of a text after encoding.
void check_after(const json& root, const std::string& source) {
  for (const char* name : {"truncation", "padding"})
    PRISM_CHECK(root.value(name, json()).is_null(), "tokenizer",
                "{}: expected \"{}\" to be null; found {}, which would change ids; set it to null.", source, name,
                short_line(root.at(name).dump(), kMostShown));
  const json processor = root.value("post_processor", json());
  PRISM_CHECK(
      adds_special_tokens_only(processor), "tokenizer",
      "{}: expected a post_processor of the kinds ByteLevel and TemplateProcessing, or null; found {}; set it to "
      "null: prism opens documents by itself.",
      source, short_line(processor.dump(), kMostShown));
}

/// Reads what the decoder says about spaces and bytes.
void read_decoder(const json& root, const json& model, const std::string& source, TokenizerFile& file) {
  const json decoder = root.value("decoder", json());
  const json type = decoder.is_object() ? decoder.value("type", json()) : json();
  if (type == "ByteLevel") return;
  json parts = type == "Sequence" ? decoder.value("decoders", json()) : json();
  if (!parts.is_array()) parts = json::array();
  const json replace = {{"type", "Replace"}, {"pattern", {{"String", kSpaceMarker}}}, {"content", " "}};
  const json strip = {{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}};
  if (!parts.empty() && parts.front() == replace) {
    file.spells_spaces = true;
    parts.erase(0);
  }
  if (!parts.empty() && parts.back() == strip) {
    file.strips_space = true;
    parts.erase(parts.size() - 1);
  }
  PRISM_CHECK(
      parts == json({{{"type", "ByteFallback"}}, {{"type", "Fuse"}}}), "tokenizer",
      "{}: expected a decoder of type \"ByteLevel\", or a Sequence of Replace (\"{}\" by a space), ByteFallback, "
      "Fuse and Strip (one space at the beginning); found {}; other kinds are not supported, choose another "
      "tokenizer.",
      source, kSpaceMarker, short_line(type == "Sequence" ? decoder.dump() : type.dump(), kMostShown));
  const json fallback = model.value("byte_fallback", json());
  PRISM_CHECK(fallback == true, "tokenizer",
              "{}: expected \"byte_fallback\": true beside a decoder with ByteFallback, so that every text can be "
              "encoded; found {}; choose another tokenizer.",
              source, fallback.dump());
  file.kind = TokenizerFile::Kind::byte_fallback;
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

/// The rows of "merges". All have one form, because `tokenizers` reads no mixture.
std::string merges_text(const TokenizerFile& file) {
  const bool pairs = std::any_of(file.merges.begin(), file.merges.end(), [&](const Merge& merge) {
    return file.spelling(merge.result).find(' ') != std::string::npos;
  });
  return join_rows(file.merges, "      ", [&](const Merge& merge) {
    const std::string &left = file.spelling(merge.left), &right = file.spelling(merge.right);
    return pairs ? json({left, right}).dump() : json(left + " " + right).dump();
  });
}

/// The lengths of the runs of merges with one rank, as JSON.
std::string rank_runs(const std::vector<uint32_t>& ranks) {
  std::string text;
  for (size_t begin = 0, end = 0; begin < ranks.size(); begin = end) {
    while (end < ranks.size() && ranks[end] == ranks[begin]) ++end;
    text += fmt::format("{}{}", text.empty() ? "" : ",", end - begin);
  }
  return "[" + text + "]";
}

std::string added_text(const AddedToken& token) {
  return fmt::format(
      R"({{"id":{},"content":{},"single_word":{},"lstrip":{},"rstrip":{},"normalized":{},"special":{}}})", token.id,
      json(token.content).dump(), token.single_word, token.lstrip, token.rstrip, token.normalized, token.special);
}

int hexadecimal_digit(char digit) {
  if (digit >= '0' && digit <= '9') return digit - '0';
  if (digit >= 'A' && digit <= 'F') return digit - 'A' + 10;
  return -1;
}

}  // namespace

const std::string& TokenizerFile::spelling(int32_t id) const {
  const auto found = std::lower_bound(vocab.begin(), vocab.end(), id,
                                      [](const auto& entry, int32_t wanted) { return entry.id < wanted; });
  PRISM_ASSERT(found != vocab.end() && found->id == id, "tokenizer", "expected id {} in the vocabulary; found none.",
               id);
  return found->spelling;
}

std::optional<uint8_t> fallback_byte(std::string_view spelling) {
  if (spelling.size() != 6 || !spelling.starts_with("<0x") || spelling[5] != '>') return std::nullopt;
  const int high = hexadecimal_digit(spelling[3]), low = hexadecimal_digit(spelling[4]);
  if (high < 0 || low < 0) return std::nullopt;
  return static_cast<uint8_t>(16 * high + low);
}

TokenizerFile parse_tokenizer_file(std::string_view text, const std::string& source) {
  // Not Json: its objects are lists, so each lookup in the vocabulary would take linear time.
  auto root = parse_json<json>(text, source);
  PRISM_CHECK(root.is_object(), "tokenizer", "{}: expected an object; found {}; name a tokenizer.json.", source,
              root.type_name());
  const json& model = member(root, "model", json::value_t::object, source);
  check_model(model, source);
  check_after(root, source);

  TokenizerFile file;
  read_decoder(root, model, source, file);
  read_vocab(member(model, "vocab", json::value_t::object, source), source, file);
  read_merges(member(model, "merges", json::value_t::array, source), source, file);
  read_ranks(model, source, file);
  const auto ignore = model.find("ignore_merges");
  file.ignore_merges = ignore != model.end() && ignore->is_boolean() && ignore->get<bool>();
  if (const auto added = root.find("added_tokens"); added != root.end() && !added->is_null())
    read_added(member(root, "added_tokens", json::value_t::array, source), source, file);
  file.normalizer = root.value("normalizer", json());
  file.pre_tokenizer = root.value("pre_tokenizer", json());

  for (const auto& [name, value] : model.items()) {
    if (name != "vocab" && name != "merges" && name != "ignore_merges" && name != "prism_rank_runs")
      file.model_rest[name] = value;
  }
  for (const char* name : {"model", "added_tokens", "normalizer", "pre_tokenizer"}) root.erase(name);
  file.rest = std::move(root);
  return file;
}

/// The steps of the post_processor.
json post_processors(const TokenizerFile& file) {
  const json processor = file.rest.value("post_processor", json());
  if (processor.is_object() && processor.value("type", json()) == "Sequence")
    return processor.value("processors", json::array());
  return json::array({processor});
}

std::optional<int32_t> opening_of_template(const TokenizerFile& file) {
  for (const auto& part : post_processors(file)) {
    const json single = part.is_object() ? part.value("single", json()) : json();
    if (!single.is_array() || single.empty() || !single[0].is_object()) continue;
    const json special = single[0].value("SpecialToken", json());
    const json name = special.is_object() ? special.value("id", json()) : json();
    for (const auto& token : file.added) {
      if (name == token.content) return token.id;
    }
  }
  return std::nullopt;
}

void set_opening(TokenizerFile& file, const std::optional<int32_t>& id) {
  json parts = json::array();
  for (const auto& part : post_processors(file))
    if (part.is_object() && part.value("type", json()) != "TemplateProcessing") parts.push_back(part);
  const auto token = std::ranges::find_if(file.added, [&](const AddedToken& each) { return each.id == id; });
  if (token != file.added.end()) {
    const auto& name = token->content;
    const auto text = [](const char* part, int type) { return json{{"Sequence", {{"id", part}, {"type_id", type}}}}; };
    const auto opening = [&](int type) { return json{{"SpecialToken", {{"id", name}, {"type_id", type}}}}; };
    parts.push_back({{"type", "TemplateProcessing"},
                     {"single", json::array({opening(0), text("A", 0)})},
                     {"pair", json::array({opening(0), text("A", 0), opening(1), text("B", 1)})},
                     {"special_tokens",
                      {{name, {{"id", name}, {"ids", json::array({token->id})}, {"tokens", json::array({name})}}}}}});
  }
  file.rest["post_processor"] = parts.empty()       ? json()
                                : parts.size() == 1 ? parts.front()
                                                    : json{{"type", "Sequence"}, {"processors", parts}};
}

std::string write_tokenizer_file(const TokenizerFile& file) {
  // The order of members is that of Hugging Face, for people who read the file.
  const auto rest = [&](const char* name, const char* otherwise) {
    const auto value = file.rest.find(name);
    return fmt::format("  \"{}\": {},\n", name, value == file.rest.end() ? otherwise : value->dump());
  };
  std::string text = "{\n" + rest("version", "\"1.0\"") + rest("truncation", "null") + rest("padding", "null");
  text += "  \"added_tokens\": [" + join_rows(file.added, "    ", added_text) + "\n  ],\n";
  text += "  \"normalizer\": " + file.normalizer.dump() + ",\n";
  text += "  \"pre_tokenizer\": " + file.pre_tokenizer.dump() + ",\n";
  text += rest("post_processor", "null") + rest("decoder", "null") + "  \"model\": {\n    \"type\": \"BPE\",\n";
  for (const auto& [name, value] : file.model_rest.items()) {
    if (name != "type") text += fmt::format("    {}: {},\n", json(name).dump(), value.dump());
  }
  text += fmt::format("    \"ignore_merges\": {},\n", file.ignore_merges);
  if (!file.ranks.empty()) text += "    \"prism_rank_runs\": " + rank_runs(file.ranks) + ",\n";
  text += "    \"vocab\": {";
  text += join_rows(file.vocab, "      ",
                    [](const auto& entry) { return fmt::format("{}: {}", json(entry.spelling).dump(), entry.id); });
  text += "\n    },\n    \"merges\": [" + merges_text(file) + "\n    ]\n  }\n}\n";
  return text;
}

}  // namespace prism
