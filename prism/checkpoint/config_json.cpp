// config.json: Llama's fields where all layers are equal, or Qwen3's, which is Llama with norms of queries and keys;
// one entry per layer where they are not, or have what Llama has not.
#include "prism/checkpoint/config_json.h"

#include <algorithm>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr const char* kOperation = "config.json";
constexpr const char* kFingerprint = "tokenizer_fingerprint";

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

// Fields of ours, for what transformers has no name: written where they are not as in Llama.
constexpr const char* kQkNorm = "qk_norm";
constexpr const char* kRotaryKind = "rotary_kind";
constexpr const char* kMlpDepth = "mlp_depth";
constexpr const char* kNorm = "norm";
constexpr const char* kOutputProjection = "output_projection";
constexpr const char* kLearnedPositions = "learned_positions";
constexpr const char* kFinalNorm = "final_norm";
constexpr const char* kInitialisation = "initialisation";

/// Whether a layer is one of Llama's, or of Qwen3's.
bool is_llama(const LayerConfig& layer) {
  return layer.rotary.turns() && layer.ffn.kind == "swiglu" && layer.norm == "rms" && layer.output_projection;
}

/// What transformers calls the fields of one of Llama's layers. Whether queries and keys have norms is the model type's
/// to say.
Json llama_layer_to_json(const LayerConfig& layer) {
  return {{"num_attention_heads", layer.heads}, {"num_key_value_heads", layer.kv_heads},
          {"head_dim", layer.head_dim},         {"intermediate_size", layer.ffn.width},
          {"rope_theta", layer.rotary.base},    {"rope_scaling", scaling_to_json(layer.rotary)}};
}

Json layer_to_json(const LayerConfig& layer) {
  Json json = llama_layer_to_json(layer);
  if (layer.qk_norm) json[kQkNorm] = true;
  if (!layer.rotary.turns()) json[kRotaryKind] = layer.rotary.kind;
  if (layer.ffn.kind == "relu")
    json.update({{"hidden_act", "relu"}, {"mlp_bias", layer.ffn.bias}, {kMlpDepth, layer.ffn.depth}});
  if (layer.norm != "rms") json[kNorm] = layer.norm;
  if (!layer.output_projection) json[kOutputProjection] = false;
  return json;
}

bool all_equal(const std::vector<LayerConfig>& layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [&](const LayerConfig& layer) { return equal_fields(layer, layers.back()); });
}

/// Reads typed members and says which is missing or of the wrong type.
class MemberReader {
 public:
  MemberReader(const Json& json, std::string source) : json_(json), source_(std::move(source)) {
    PRISM_CHECK(json.is_object(), kOperation, "expected an object in {}; found {}.", source_, json.type_name());
  }

  bool has(const char* name) const { return json_.contains(name) && !json_[name].is_null(); }

  template <class T>
  T get(const char* name) const {
    PRISM_CHECK(has(name), kOperation, "expected \"{}\" in {}; found none.", name, source_);
    T value{};
    read_fields(value, json_[name], fmt::format("{}: {}", source_, name));
    return value;
  }

  template <class T>
  T get(const char* name, T otherwise) const {
    return has(name) ? get<T>(name) : otherwise;
  }

  /// A member that prism supports with one value only.
  template <class T>
  void expect(const char* name, T only) const {
    const T found = get<T>(name, only);
    PRISM_CHECK(found == only, kOperation, "{}: expected {} = {}; found {}; prism has no other yet.", source_, name,
                only, found);
  }

 private:
  const Json& json_;
  std::string source_;
};

RotaryConfig rotary_from_json(const Json& json, const std::string& source) {
  const MemberReader all(json, source);
  all.expect("partial_rotary_factor", 1.0);
  RotaryConfig rotary;
  rotary.base = all.get<double>("rope_theta", rotary.base);
  // transformers 5 nests the base with the scaling, 4 keeps them apart; a scaling that was added by hand wins.
  const char* nested = all.has("rope_scaling") ? "rope_scaling" : "rope_parameters";
  for (const char* name : {"rope_parameters", nested})
    if (all.has(name)) rotary.base = MemberReader(json[name], source).get<double>("rope_theta", rotary.base);
  if (!all.has(nested)) return rotary;
  const MemberReader members(json[nested], source + ": " + nested);
  members.expect("partial_rotary_factor", 1.0);
  const auto type = members.get<std::string>("rope_type", members.get<std::string>("type", "default"));
  if (type == "default") return rotary;
  PRISM_CHECK(type == "linear" || type == "yarn", kOperation,
              "{}: expected rope_type default, linear or yarn; found \"{}\".", source, type);
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
  // Corrections of the attention factor that are not the paper's.
  for (const char* name : {"mscale", "mscale_all_dim"}) members.expect(name, 0.0);
  members.expect("truncate", true);
  return rotary;
}

LayerConfig layer_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  LayerConfig layer;
  layer.heads = members.get<int64_t>("num_attention_heads");
  layer.kv_heads = members.get<int64_t>("num_key_value_heads", layer.heads);
  layer.head_dim = members.get<int64_t>("head_dim", 0);
  layer.ffn.width = members.get<int64_t>("intermediate_size");
  layer.rotary = rotary_from_json(json, source);
  layer.rotary.kind = members.get<std::string>(kRotaryKind, layer.rotary.kind);
  layer.qk_norm = members.get<bool>(kQkNorm, false);
  layer.norm = members.get<std::string>(kNorm, layer.norm);
  layer.output_projection = members.get<bool>(kOutputProjection, true);
  const auto activation = members.get<std::string>("hidden_act", "silu");
  PRISM_CHECK(activation == "silu" || activation == "relu", kOperation,
              "{}: expected hidden_act silu or relu; found \"{}\"; prism has no other yet.", source, activation);
  if (activation == "silu") return layer;
  layer.ffn.kind = "relu";
  layer.ffn.bias = members.get<bool>("mlp_bias", false);
  layer.ffn.depth = members.get<int64_t>(kMlpDepth, 1);
  return layer;
}

}  // namespace

Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer) {
  const auto end_of_text = tokenizer != nullptr ? tokenizer->end_of_text() : std::nullopt;
  const bool uniform =
      all_equal(config.layers) && is_llama(config.layers.back()) && !config.learned_positions && config.final_norm;
  const bool qwen3 = uniform && config.layers.back().qk_norm;
  Json json = {{"architectures",
                {qwen3     ? "Qwen3ForCausalLM"
                 : uniform ? "LlamaForCausalLM"
                           : "PrismForCausalLM"}},
               {"model_type", qwen3     ? "qwen3"
                              : uniform ? "llama"
                                        : "prism"},
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
               {"dtype", "float32"},
               {"torch_dtype", "float32"},
               {"use_cache", true}};
  json["bos_token_id"] = json["eos_token_id"] = end_of_text ? Json(*end_of_text) : Json(nullptr);
  if (tokenizer != nullptr) json[kFingerprint] = tokenizer->fingerprint_text();
  if (uniform) {
    json.update(llama_layer_to_json(config.layers.back()));
    const auto& rotary = config.layers.back().rotary;
    json["rope_parameters"] = rotary.scaling == "none" ? Json{{"rope_type", "default"}} : scaling_to_json(rotary);
    json["rope_parameters"]["rope_theta"] = rotary.base;
  } else {
    // No scalar that would be true of one layer only: a reader that knows no layers must fail, not misread.
    Json& layers = json["per_layer_config"] = Json::object();
    for (size_t i = 0; i < config.layers.size(); ++i) layers[std::to_string(i)] = layer_to_json(config.layers[i]);
    if (!std::all_of(config.layers.begin(), config.layers.end(), is_llama))
      for (const char* name : {"hidden_act", "mlp_bias"}) json.erase(name);
  }
  if (config.learned_positions) json[kLearnedPositions] = true;
  if (!config.final_norm) json[kFinalNorm] = false;
  if (config.initialisation != "gpt2") json[kInitialisation] = config.initialisation;
  return json;
}

ModelConfig config_from_json(const Json& json, const std::string& source) {
  const MemberReader members(json, source);
  const auto type = members.get<std::string>("model_type");
  PRISM_CHECK(type == "llama" || type == "qwen3" || type == "prism", kOperation,
              "{}: expected model_type llama, qwen3 or prism; found \"{}\".", source, type);
  members.expect<bool>("use_sliding_window", false);
  members.expect<std::string>("hidden_act", "silu");
  members.expect<bool>("attention_bias", false);
  members.expect<bool>("mlp_bias", false);
  members.expect<int64_t>("prism_format", 1);

  ModelConfig config;
  config.vocab_size = members.get<int64_t>("vocab_size");
  config.d_model = members.get<int64_t>("hidden_size");
  config.context = members.get<int64_t>("max_position_embeddings");
  config.tied = members.get<bool>("tie_word_embeddings", false);
  config.norm_eps = members.get<double>("rms_norm_eps", 1e-6);  // what transformers takes for a Llama without it
  config.init_std = members.get<double>("initializer_range", config.init_std);
  config.base_heads = members.get<int64_t>("base_heads", 0);
  config.allow_any = members.get<bool>("allow_any", false);
  config.learned_positions = members.get<bool>(kLearnedPositions, false);
  config.final_norm = members.get<bool>(kFinalNorm, true);
  config.initialisation = members.get<std::string>(kInitialisation, config.initialisation);
  const auto layers = members.get<int64_t>("num_hidden_layers");
  PRISM_CHECK(layers > 0 && layers <= 4096, kOperation, "{}: expected num_hidden_layers within 1-4096; found {}.",
              source, layers);
  if (type != "prism") {
    LayerConfig layer = layer_from_json(json, source);
    layer.qk_norm = type == "qwen3";
    config.layers.assign(static_cast<size_t>(layers), layer);
  } else {
    PRISM_CHECK(json.contains("per_layer_config") && json["per_layer_config"].size() == static_cast<size_t>(layers),
                kOperation, "{}: expected per_layer_config with {} layers; found {}.", source, layers,
                json.contains("per_layer_config") ? json["per_layer_config"].size() : 0);
    for (int64_t i = 0; i < layers; ++i) {
      const auto key = std::to_string(i);
      PRISM_CHECK(json["per_layer_config"].contains(key), kOperation,
                  "{}: expected layer {} in per_layer_config; found none.", source, i);
      config.layers.push_back(layer_from_json(json["per_layer_config"][key], fmt::format("{}, layer {}", source, i)));
    }
  }
  complete(config);
  return config;
}

void check_tokenizer(const Json& json, const Tokenizer& tokenizer, const std::string& source) {
  const auto expected = MemberReader(json, source).get<std::string>(kFingerprint, tokenizer.fingerprint_text());
  PRISM_CHECK(tokenizer.fingerprint_text() == expected, kOperation,
              "{}: expected the tokenizer of this model, {}; found {}; it belongs to another model.", source, expected,
              tokenizer.fingerprint_text());
}

}  // namespace prism
