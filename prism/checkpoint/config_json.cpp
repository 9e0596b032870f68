// Reads and writes config.json. A model that a family of transformers can express is written as one of that family. All
// others are written field by field through visit(), which is format 2.
#include "prism/checkpoint/config_json.h"

#include <algorithm>
#include <string_view>

#include "prism/checkpoint/families/family.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

constexpr const char* kFingerprint = "tokenizer_fingerprint";

/// The config.json of all other models, format 2.
struct PrismFile {
  std::vector<std::string> architectures = {"PrismForCausalLM"};
  std::string model_type = "prism";
  int64_t prism_format = 2;
  std::string dtype = "float32", torch_dtype = "float32";
  Json bos_token_id, eos_token_id, fingerprint, word_starts;
  Json auto_map = {{"AutoConfig", "configuration_prism.PrismConfig"},
                   {"AutoModel", "modeling_prism.PrismModel"},
                   {"AutoModelForCausalLM", "modeling_prism.PrismForCausalLM"}};
  Json model = Json::object();
  template <class Visitor>
  void visit(Visitor& v) {
    v("architectures", architectures, "as transformers wants to see it");
    v("model_type", model_type, "likewise");
    v("prism_format", prism_format, "version of this layout");
    v("dtype", dtype, "of the weights");
    v("torch_dtype", torch_dtype, "its older name");
    v("bos_token_id", bos_token_id, "the token that opens documents; null: none");
    v("eos_token_id", eos_token_id, "the token that ends documents; null: none");
    v(kFingerprint, fingerprint, "of the model's own tokenizer; null: none");
    v("word_starts", word_starts, "for transformers: bits of the ids that start a word, in base64; null: not needed");
    v("auto_map", auto_map, "the classes with which transformers loads the model");
    v("model", model, "a ModelConfig");
  }
};

/// One bit for each id, the first id in the highest bit of the first byte, in base64.
std::string word_start_bits(const std::vector<uint8_t>& starts, int64_t vocab_size) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr size_t kBits = 24;  // four digits
  std::string text;
  for (size_t first = 0; first < static_cast<size_t>(vocab_size); first += kBits) {
    uint32_t group = 0;
    for (size_t id = first; id < first + kBits; ++id)
      group = (group << 1) | static_cast<uint32_t>(id < starts.size() && starts[id] != 0);
    for (const int shift : {18, 12, 6, 0}) text += kDigits[(group >> shift) & 63];
  }
  return text;
}

// Format 1, which prism still reads but no longer writes: `per_layer_config` with transformers' names, and our own
// names for the layer fields that existed then. New fields belong to format 2 only.

LayerConfig format_1_layer_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  auto layer = read_layer(families().front(), members);
  layer.rotary.kind = members.get<std::string>("rotary_kind", layer.rotary.kind);
  layer.qk_norm = members.get<bool>("qk_norm", false);
  layer.norm = members.get<std::string>("norm", layer.norm);
  layer.output_projection = members.get<bool>("output_projection", true);
  const auto activation = members.get<std::string>("hidden_act", "silu");
  PRISM_CHECK(activation == "silu" || activation == "relu", "config.json",
              "{}: expected hidden_act silu or relu; found \"{}\"; prism supports no other yet; choose another model.",
              source, activation);
  if (activation == "silu") return layer;
  layer.ffn.kind = activation;
  layer.ffn.bias = members.get<bool>("mlp_bias", false);
  layer.ffn.depth = members.get<int64_t>("mlp_depth", 1);
  return layer;
}

ModelConfig format_1_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  members.expect("attention_bias", false);
  members.expect("mlp_bias", false);
  auto config = read_sizes(members);
  config.learned_positions = members.get<bool>("learned_positions", false);
  config.final_norm = members.get<bool>("final_norm", true);
  const auto layers = read_layer_count(members);
  const Json per_layer = members.get<Json>("per_layer_config", Json::object());
  PRISM_CHECK(per_layer.size() == layers, "config.json",
              "{}: expected per_layer_config with {} layers; found {}; correct one of them.", source, layers,
              per_layer.size());
  for (size_t i = 0; i < layers; ++i) {
    const auto layer = per_layer.find(std::to_string(i));
    PRISM_CHECK(layer != per_layer.end(), "config.json",
                "{}: expected layer {} in per_layer_config; found none; add it.", source, i);
    config.layers.push_back(format_1_layer_from_json(*layer, fmt::format("{}, layer {}", source, i)));
  }
  return config;
}

ModelConfig prism_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  const auto format = members.get<int64_t>("prism_format");
  if (format == 1) return format_1_from_json(json, source);
  PRISM_CHECK(format == 2, "config.json", "{}: expected prism_format 1 or 2; found {}; use the prism that wrote it.",
              source, format);
  const auto file = fields_from_json<PrismFile>(json, source);
  auto config = fields_from_json<ModelConfig>(file.model, source + ": model");
  expand_shorthand(config);
  return config;
}

/// The fields of a complete config without its empty shorthand.
Json complete_to_json(const ModelConfig& config) {
  Json json = fields_to_json(config);
  const Json shorthand = fields_to_json(LayersShorthand());
  for (const auto& [name, value] : shorthand.items()) json.erase(name);
  return json;
}

/// Checks the ids of the tokens that open and end documents: a number, several, or null.
void check_special_ids(const Json& json, int64_t vocab_size, const std::string& source) {
  for (const char* name : {"bos_token_id", "eos_token_id"}) {
    const Json given = json.value(name, Json());
    const auto is_id = [&](const Json& id) {
      return id.is_number_integer() && id.get<int64_t>() >= 0 && id.get<int64_t>() < vocab_size;
    };
    const bool is_right = given.is_array() ? std::all_of(given.begin(), given.end(), is_id) : is_id(given);
    PRISM_CHECK(given.is_null() || is_right, "config.json",
                "{}: {}: expected token ids below vocab_size, {}; found {}; correct it.", source, name, vocab_size,
                short_line(to_text(given), 60));
  }
}

}  // namespace

Json special_id_members(const Tokenizer& tokenizer) {
  const auto& [opening, ends, opens_prompts] = tokenizer.special_ids();
  return {{"bos_token_id", opening ? Json(*opening) : Json()},
          {"eos_token_id", ends.empty()       ? Json()
                           : ends.size() == 1 ? Json(ends.front())
                                              : Json(ends)}};
}

Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer, const std::string& dtype) {
  PrismFile file;
  file.dtype = file.torch_dtype = dtype;
  if (tokenizer != nullptr) {
    const Json ids = special_id_members(*tokenizer);
    file.bos_token_id = ids["bos_token_id"];
    file.eos_token_id = ids["eos_token_id"];
    file.fingerprint = tokenizer->fingerprint_text();
    if (has_word_positions(config)) file.word_starts = word_start_bits(tokenizer->word_starts(), config.vocab_size);
  }
  for (const auto& family : families())
    if (auto json = write_config(family, config)) {
      json->update({{"dtype", file.dtype},
                    {"torch_dtype", file.torch_dtype},
                    {"eos_token_id", file.eos_token_id},
                    {"bos_token_id", file.bos_token_id}});
      if (!file.fingerprint.is_null()) (*json)[kFingerprint] = file.fingerprint;
      return *json;
    }
  if (config.classes > 0) {
    file.architectures = {"PrismForSequenceClassification"};
    file.auto_map.erase("AutoModelForCausalLM");
    file.auto_map["AutoModelForSequenceClassification"] = "modeling_prism.PrismForSequenceClassification";
  }
  file.model = complete_to_json(config);
  return fields_to_json(file);
}

ModelConfig config_from_json(const Json& json, const std::string& source) {
  const auto type = MemberReader(json, source).get<std::string>("model_type");
  const Family* family = find_family(type);
  PRISM_CHECK(family != nullptr || type == "prism", "config.json",
              "{}: expected model_type {}; found \"{}\"; prism supports no other yet; choose another model.", source,
              names_of_families(), type);
  auto config = family == nullptr ? prism_from_json(json, source) : read_config(*family, MemberReader(json, source));
  try {
    complete(config);
  } catch (const InputError& error) {
    throw InputError("config.json", fmt::format("{}: {}", source, error.sentence()));
  }
  check_special_ids(json, config.vocab_size, source);
  return config;
}

void check_tokenizer(const Json& json, const Tokenizer& tokenizer, const std::string& source) {
  const auto expected = MemberReader(json, source).get<std::string>(kFingerprint, tokenizer.fingerprint_text());
  PRISM_CHECK(
      tokenizer.fingerprint_text() == expected, "config.json",
      "{}: expected the tokenizer of this model, {}; found {}, which belongs to another model; restore the right one.",
      source, expected, tokenizer.fingerprint_text());
}

}  // namespace prism
