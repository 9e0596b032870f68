// Reads and writes config.json. Models with identical layers that transformers supports are written as Llama or, with
// norms of queries and keys, as Qwen3. All others are written field by field through visit(), which is format 2.
#include "prism/checkpoint/config_json.h"

#include <algorithm>
#include <string_view>

#include "prism/attention/layer_list.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/text/printable.h"

namespace prism {
namespace {

constexpr const char* kFingerprint = "tokenizer_fingerprint";
constexpr const char* kInitialisation = "initialisation";  ///< our addition to Llama's fields

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

Json scaling_to_json(const RotaryConfig& rotary) {
  if (rotary.scaling == "none") return nullptr;
  Json json = {{"rope_type", rotary.scaling}, {"factor", rotary.factor}};
  if (rotary.scaling == "yarn") {
    json["original_max_position_embeddings"] = rotary.original_context;
    json["beta_fast"] = rotary.beta_fast;
    json["beta_slow"] = rotary.beta_slow;
    json["attention_factor"] = rotary_attention_factor(rotary);
  }
  return json;
}

/// The layer reduced to the fields that a Llama or Qwen3 config.json can hold. All others have their defaults, which
/// are Llama's: swiglu, RMSNorm, an output projection.
LayerConfig llama_part(const LayerConfig& layer) {
  LayerConfig llama;
  llama.heads = layer.heads;
  llama.kv_heads = layer.kv_heads;
  llama.head_dim = layer.head_dim;
  llama.ffn.width = layer.ffn.width;
  llama.rotary = {.base = layer.rotary.base,
                  .scaling = layer.rotary.scaling,
                  .factor = layer.rotary.factor,
                  .original_context = layer.rotary.original_context,
                  .beta_fast = layer.rotary.beta_fast,
                  .beta_slow = layer.rotary.beta_slow,
                  .attention_factor = layer.rotary.attention_factor};
  llama.qk_norm = layer.qk_norm;
  return llama;
}

/// The same for a model.
ModelConfig llama_part(const ModelConfig& config) {
  ModelConfig llama;
  llama.vocab_size = config.vocab_size;
  llama.d_model = config.d_model;
  llama.context = config.context;
  llama.tied = config.tied;
  llama.norm_eps = config.norm_eps;
  llama.init_std = config.init_std;
  llama.initialisation = config.initialisation;
  llama.base_heads = config.base_heads;
  llama.allow_any = config.allow_any;
  for (const auto& layer : config.layers) llama.layers.push_back(llama_part(layer));
  return llama;
}

Json llama_to_json(const ModelConfig& config, const LayerConfig& layer, const PrismFile& file) {
  Json json = {{"architectures", {layer.qk_norm ? "Qwen3ForCausalLM" : "LlamaForCausalLM"}},
               {"model_type", layer.qk_norm ? "qwen3" : "llama"},
               {"prism_format", 1},
               {"vocab_size", config.vocab_size},
               {"hidden_size", config.d_model},
               {"num_hidden_layers", static_cast<int64_t>(config.layers.size())},
               {"max_position_embeddings", config.context},
               {"tie_word_embeddings", config.tied},
               {"hidden_act", "silu"},
               {"attention_bias", false},
               {"mlp_bias", false},
               {"rms_norm_eps", config.norm_eps},
               {"initializer_range", config.init_std},
               {"base_heads", config.base_heads},
               {"allow_any", config.allow_any},
               {"dtype", file.dtype},
               {"torch_dtype", file.torch_dtype},
               {"use_cache", true},
               {"eos_token_id", file.eos_token_id},
               {"bos_token_id", file.bos_token_id}};
  if (!file.fingerprint.is_null()) json[kFingerprint] = file.fingerprint;
  json.update({{"num_attention_heads", layer.heads},
               {"num_key_value_heads", layer.kv_heads},
               {"head_dim", layer.head_dim},
               {"intermediate_size", layer.ffn.width},
               {"rope_theta", layer.rotary.base},
               {"rope_scaling", scaling_to_json(layer.rotary)}});
  const bool scaled = layer.rotary.scaling != "none";
  json["rope_parameters"] = scaled ? scaling_to_json(layer.rotary) : Json{{"rope_type", "default"}};
  json["rope_parameters"]["rope_theta"] = layer.rotary.base;
  if (config.initialisation != "gpt2") json[kInitialisation] = config.initialisation;
  return json;
}

/// Reads typed members. Errors name the member that is missing or of the wrong type.
class MemberReader {
 public:
  MemberReader(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
    PRISM_CHECK(json.is_object(), "config.json", "expected an object in {}; found {}; name a model's config.json.",
                source_, json.type_name());
  }

  const std::string& source() const { return source_; }
  bool has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }

  template <class T>
  T get(const char* name) const {
    PRISM_CHECK(has(name), "config.json", "expected \"{}\" in {}; found none; add it.", name, source_);
    T value{};
    read_fields(value, json_[name], fmt::format("{}: {}", source_, name));
    return value;
  }

  template <class T>
  T get(const char* name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }

  /// Checks a member of which prism supports a single value.
  template <class T>
  void expect(const char* name, T only) const {
    const T found = get<T>(name, only);
    PRISM_CHECK(found == only, "config.json",
                "{}: expected {} = {}; found {}; prism supports no other yet; choose another model.", source_, name,
                only, found);
  }

 private:
  const Json& json_;
  std::string source_;
};

/// The rope_theta, which transformers 5 nests with the scaling and version 4 keeps at the top.
std::optional<double> rotary_base(const MemberReader& all, const Json& json, const std::string& source) {
  std::optional<double> base;
  for (const char* name : {"", "rope_parameters", "rope_scaling"}) {
    if (*name != '\0' && !all.has(name)) continue;
    const MemberReader members = *name == '\0' ? all : MemberReader(json[name], source + ": " + name);
    if (!members.has("rope_theta")) continue;
    const auto found = members.get<double>("rope_theta");
    PRISM_CHECK(!base || *base == found, "config.json",
                "{}: expected one rope_theta; found {} and, in {}, {}; make them equal, or remove one.", source,
                base.value_or(0), name, found);
    base = found;
  }
  return base;
}

RotaryConfig rotary_from_json(const Json& json, const std::string& source) {
  const MemberReader all(json, source);
  all.expect("partial_rotary_factor", 1.0);
  RotaryConfig rotary;
  rotary.base = rotary_base(all, json, source).value_or(rotary.base);
  // A rope_scaling added by hand wins.
  const char* nested = all.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  if (!all.has(nested)) return rotary;
  const MemberReader members(json[nested], source + ": " + nested);
  members.expect("partial_rotary_factor", 1.0);
  const auto type = members.get<std::string>("rope_type", members.get<std::string>("type", "default"));
  if (type == "default") return rotary;
  PRISM_CHECK(type == "linear" || type == "yarn", "config.json",
              "{}: expected rope_type default, linear or yarn; found \"{}\"; prism supports no other yet; choose "
              "another model.",
              source, type);
  rotary.scaling = type;
  const int64_t context = all.get<int64_t>("max_position_embeddings", 0);
  rotary.original_context = type == "yarn" ? members.get<int64_t>("original_max_position_embeddings", context) : 0;
  if (!members.has("factor") && rotary.original_context > 0) {
    rotary.factor = static_cast<double>(context) / static_cast<double>(rotary.original_context);
  } else {
    rotary.factor = members.get<double>("factor");
  }
  if (type == "linear") return rotary;
  rotary.beta_fast = members.get<double>("beta_fast", rotary.beta_fast);
  rotary.beta_slow = members.get<double>("beta_slow", rotary.beta_slow);
  rotary.attention_factor = members.get<double>("attention_factor", 0);
  // Corrections of the attention factor that the paper does not have.
  for (const char* name : {"mscale", "mscale_all_dim"}) members.expect(name, 0.0);
  members.expect("truncate", true);
  return rotary;
}

/// A layer in transformers' names.
LayerConfig llama_layer_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  LayerConfig layer;
  layer.heads = members.get<int64_t>("num_attention_heads");
  layer.kv_heads = members.get<int64_t>("num_key_value_heads", layer.heads);
  layer.head_dim = members.get<int64_t>("head_dim", 0);
  layer.ffn.width = members.get<int64_t>("intermediate_size");
  layer.rotary = rotary_from_json(json, source);
  return layer;
}

/// All but the layers, in transformers' names.
ModelConfig llama_sizes_from_json(const MemberReader& members) {
  members.expect<bool>("use_sliding_window", false);
  members.expect<std::string>("hidden_act", "silu");
  members.expect<bool>("attention_bias", false);
  members.expect<bool>("mlp_bias", false);
  ModelConfig config;
  config.vocab_size = members.get<int64_t>("vocab_size");
  config.d_model = members.get<int64_t>("hidden_size");
  config.context = members.get<int64_t>("max_position_embeddings");
  config.tied = members.get<bool>("tie_word_embeddings", false);
  config.norm_eps = members.get<double>("rms_norm_eps", 1e-6);  // transformers' default for Llama
  config.init_std = members.get<double>("initializer_range", config.init_std);
  for (const auto& [name, size] : {std::pair{"vocab_size", config.vocab_size},
                                   {"hidden_size", config.d_model},
                                   {"max_position_embeddings", config.context}})
    PRISM_CHECK(size > 0, "config.json", "{}: expected {} of at least 1; found {}; correct it.", members.source(), name,
                size);
  PRISM_CHECK(config.norm_eps > 0 && config.norm_eps <= 1, "config.json",
              "{}: expected rms_norm_eps above 0 and at most 1; found {}; correct it.", members.source(),
              config.norm_eps);
  config.base_heads = members.get<int64_t>("base_heads", 0);
  config.allow_any = members.get<bool>("allow_any", false);
  config.initialisation = members.get<std::string>(kInitialisation, config.initialisation);
  return config;
}

size_t layer_count(const MemberReader& members, const std::string& source) {
  const auto layers = members.get<int64_t>("num_hidden_layers");
  PRISM_CHECK(layers > 0 && layers <= 4096, "config.json",
              "{}: expected num_hidden_layers within 1-4096; found {}; correct it.", source, layers);
  return static_cast<size_t>(layers);
}

ModelConfig llama_from_json(const Json& json, const std::string& source, const std::string& type) {
  const MemberReader members(json, source);
  members.expect<int64_t>("prism_format", 1);
  auto config = llama_sizes_from_json(members);
  auto layer = llama_layer_from_json(json, source);
  layer.qk_norm = type == "qwen3";
  config.layers.assign(layer_count(members, source), layer);
  return config;
}

// Format 1, which prism still reads but no longer writes: `per_layer_config` with transformers' names, and our own
// names for the layer fields that existed then. New fields belong to format 2 only.

LayerConfig format_1_layer_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  auto layer = llama_layer_from_json(json, source);
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
  auto config = llama_sizes_from_json(members);
  config.learned_positions = members.get<bool>("learned_positions", false);
  config.final_norm = members.get<bool>("final_norm", true);
  const auto layers = layer_count(members, source);
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

Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer) {
  PrismFile file;
  if (tokenizer != nullptr) {
    if (const auto end_of_text = tokenizer->end_of_text()) file.bos_token_id = file.eos_token_id = *end_of_text;
    file.fingerprint = tokenizer->fingerprint_text();
    if (has_word_positions(config)) file.word_starts = word_start_bits(tokenizer->word_starts(), config.vocab_size);
  }
  const auto layer = common_layer(config.layers);
  if (layer && equal_fields(llama_part(config), config)) return llama_to_json(config, *layer, file);
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
  PRISM_CHECK(
      type == "llama" || type == "qwen3" || type == "prism", "config.json",
      "{}: expected model_type llama, qwen3 or prism; found \"{}\"; prism supports no other yet; choose another model.",
      source, type);
  auto config = type == "prism" ? prism_from_json(json, source) : llama_from_json(json, source, type);
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
