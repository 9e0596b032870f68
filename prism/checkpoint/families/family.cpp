#include "prism/checkpoint/families/family.h"

#include <algorithm>
#include <vector>

#include "prism/attention/layer_list.h"
#include "prism/checkpoint/families/rotary_members.h"
#include "prism/core/text/names.h"

namespace prism {
namespace {

constexpr const char* kInitialisation = "initialisation";  ///< our addition to other programs' members
constexpr const char *kFull = "full_attention", *kSliding = "sliding_attention";

// A file holds one value for all layers. If layers differ, the value that is written is not read back for each of them,
// and write_config() drops the family.

bool output_biases(const ModelConfig& config) {
  return std::all_of(config.layers.begin(), config.layers.end(), [](const auto& layer) { return layer.output_bias; });
}

bool ffn_biases(const ModelConfig& config) {
  return std::all_of(config.layers.begin(), config.layers.end(), [](const auto& layer) { return layer.ffn.bias; });
}

int64_t longest_window(const ModelConfig& config) {
  int64_t longest = 0;
  for (const auto& layer : config.layers) longest = std::max(longest, layer.window);
  return longest;
}

void read_biases(const MemberReader& members, ModelConfig& config) {
  const bool attention = members.get<bool>("attention_bias", false), mlp = members.get<bool>("mlp_bias", false);
  for (auto& layer : config.layers) {
    layer.qkv_bias = layer.output_bias = attention;
    layer.ffn.bias = mlp;
  }
}

void write_biases(const ModelConfig& config, Json& json) {
  json["attention_bias"] = output_biases(config);
  json["mlp_bias"] = ffn_biases(config);
}

constexpr int64_t kUsualWindow = 4096;  ///< transformers' default of Mistral and Qwen

/// sliding_window: null is none. @param otherwise  transformers' default, for a file without the member.
int64_t read_window(const MemberReader& members, int64_t otherwise) {
  return members.get<int64_t>("sliding_window", members.mentions("sliding_window") ? 0 : otherwise);
}

/// Layers with a window, by layer_types or, if the file has none, by `slides` (layer).
/// @param otherwise  the width if the file has none.
template <class Slides>
void read_windows(const MemberReader& members, ModelConfig& config, int64_t otherwise, Slides slides) {
  const bool used = members.get<bool>("use_sliding_window", false);
  const auto window = used ? read_window(members, otherwise) : 0;
  const auto types = members.get<std::vector<std::string>>("layer_types", {});
  PRISM_CHECK(types.empty() || types.size() == config.layers.size(), "config.json",
              "{}: expected layer_types of {} layers; found {}; correct one of them.", members.source(),
              config.layers.size(), types.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    PRISM_CHECK(types.empty() || types[i] == kFull || types[i] == kSliding, "config.json",
                "{}: expected layer_types {} or {}; found \"{}\"; prism supports no other yet; choose another model.",
                members.source(), kFull, kSliding, types[i]);
    const bool slides_here = types.empty() ? slides(i) : types[i] == kSliding;
    PRISM_CHECK(types.empty() || !slides_here || window > 0, "config.json",
                "{}: expected use_sliding_window and a sliding_window for layer_types with {}; found none; add them.",
                members.source(), kSliding);
    if (slides_here) config.layers[i].window = window;
  }
}

void write_windows(const ModelConfig& config, Json& json) {
  const auto slides = [](const LayerConfig& layer) { return layer.window > 0; };
  const auto first = std::find_if(config.layers.begin(), config.layers.end(), slides);
  const bool used = first != config.layers.end();
  json["use_sliding_window"] = used;
  json["sliding_window"] = used ? Json(longest_window(config)) : Json();
  // transformers 4 lets the layers from this one on slide, and version 5 those of layer_types.
  json["max_window_layers"] = used ? first - config.layers.begin() : std::ssize(config.layers);
  Json types = Json::array();
  for (const auto& layer : config.layers) types.push_back(slides(layer) ? kSliding : kFull);
  json["layer_types"] = types;
}

void read_qwen_windows(const MemberReader& members, ModelConfig& config) {
  constexpr int64_t kDefault = 28;
  const auto first = members.get<int64_t>("max_window_layers", kDefault);
  read_windows(members, config, kUsualWindow, [first](size_t i) { return static_cast<int64_t>(i) >= first; });
}

void read_mistral(const MemberReader& members, ModelConfig& config) {
  members.expect("attention_bias", false);
  members.expect("mlp_bias", false);
  for (auto& layer : config.layers) layer.window = read_window(members, kUsualWindow);
}

void write_mistral(const ModelConfig& config, Json& json) {
  const int64_t window = longest_window(config);
  json["sliding_window"] = window > 0 ? Json(window) : Json();
}

void read_qwen2(const MemberReader& members, ModelConfig& config) {
  members.expect("mlp_bias", false);
  for (auto& layer : config.layers) layer.qkv_bias = true;
  read_qwen_windows(members, config);
}

void read_qwen3(const MemberReader& members, ModelConfig& config) {
  members.expect("mlp_bias", false);
  read_biases(members, config);
  for (auto& layer : config.layers) layer.qk_norm = true;
  read_qwen_windows(members, config);
}

void write_qwen3(const ModelConfig& config, Json& json) {
  json["attention_bias"] = output_biases(config);
  write_windows(config, json);
}

/// Layers without rotation: no_rope_layers, 0 for each of them, or every no_rope_layer_interval-th.
void read_smollm3(const MemberReader& members, ModelConfig& config) {
  read_biases(members, config);
  constexpr int64_t kDefault = 4;
  const auto interval = members.get<int64_t>("no_rope_layer_interval", kDefault);
  const auto turns = members.get<std::vector<int64_t>>("no_rope_layers", {});
  PRISM_CHECK(interval > 0, "config.json", "{}: expected no_rope_layer_interval of at least 1; found {}; correct it.",
              members.source(), interval);
  PRISM_CHECK(turns.empty() || turns.size() == config.layers.size(), "config.json",
              "{}: expected no_rope_layers of {} layers; found {}; correct one of them.", members.source(),
              config.layers.size(), turns.size());
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const bool turned = turns.empty() ? (static_cast<int64_t>(i) + 1) % interval != 0 : turns[i] != 0;
    if (!turned) config.layers[i].rotary = {.kind = "none"};
  }
  read_windows(members, config, 0, [&](size_t i) { return !config.layers[i].rotary.turns(); });
}

void write_smollm3(const ModelConfig& config, Json& json) {
  write_biases(config, json);
  write_windows(config, json);
  Json turns = Json::array();
  for (const auto& layer : config.layers) turns.push_back(layer.rotary.turns() ? 1 : 0);
  json["no_rope_layers"] = turns;
}

/// The first row that can express a model is the one that is written.
constexpr Family kFamilies[] = {
    {.model_type = "llama",
     .architecture = "LlamaForCausalLM",
     .gguf = "llama",
     .gguf_pairs_neighbours = true,
     .gguf_biases = true,
     .gguf_factors = true,
     .read = read_biases,
     .write = write_biases},
    {.model_type = "mistral",
     .architecture = "MistralForCausalLM",
     .gguf = "llama",
     .gguf_pairs_neighbours = true,
     .gguf_biases = true,
     .gguf_factors = true,
     .kv_heads = 8,
     .read = read_mistral,
     .write = write_mistral},
    {.model_type = "qwen2",
     .architecture = "Qwen2ForCausalLM",
     .gguf = "qwen2",
     .gguf_square = true,
     .kv_heads = 32,
     .read = read_qwen2,
     .write = write_windows},
    {.model_type = "qwen3",
     .architecture = "Qwen3ForCausalLM",
     .gguf = "qwen3",
     .kv_heads = 32,
     .head_dim = 128,
     .read = read_qwen3,
     .write = write_qwen3},
    {.model_type = "smollm3",
     .architecture = "SmolLM3ForCausalLM",
     .gguf = "smollm3",
     .gguf_pairs_neighbours = true,
     .gguf_unturned = 4,
     .rotary_base = 2e6,
     .kv_heads = 4,
     .tied = true,
     .read = read_smollm3,
     .write = write_smollm3},
};

}  // namespace

std::span<const Family> families() {
  return kFamilies;
}

std::string names_of_families() {
  std::vector<std::string> names;
  for (const auto& family : kFamilies) names.emplace_back(family.model_type);
  names.emplace_back("prism");
  return join_names(names, "or");
}

const Family* find_family(const std::string& model_type) {
  const auto all = families();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Family& row) { return row.model_type == model_type; });
  return found == all.end() ? nullptr : &*found;
}

ModelConfig read_sizes(const MemberReader& members, bool tied) {
  members.expect<std::string>("hidden_act", "silu");
  ModelConfig config;
  config.vocab_size = members.get<int64_t>("vocab_size");
  config.d_model = members.get<int64_t>("hidden_size");
  config.context = members.get<int64_t>("max_position_embeddings");
  config.tied = members.get<bool>("tie_word_embeddings", tied);
  config.norm_eps = members.get<double>("rms_norm_eps", 1e-6);  // transformers' default
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

LayerConfig read_layer(const Family& family, const MemberReader& members) {
  LayerConfig layer;
  layer.heads = members.get<int64_t>("num_attention_heads");
  // As in transformers: null is as many as heads, but a file without the member has the family's default.
  const bool by_heads = family.kv_heads == 0 || members.mentions("num_key_value_heads");
  layer.kv_heads = members.get<int64_t>("num_key_value_heads", by_heads ? layer.heads : family.kv_heads);
  layer.head_dim = members.get<int64_t>("head_dim", family.head_dim);
  layer.ffn.width = members.get<int64_t>("intermediate_size");
  layer.rotary = read_rotary(members, family.rotary_base);
  return layer;
}

size_t read_layer_count(const MemberReader& members) {
  constexpr const char* kName = "num_hidden_layers";
  return layer_count(members.get<int64_t>(kName), kName, members.source(), "config.json");
}

size_t layer_count(int64_t layers, const char* name, const std::string& source, const char* operation) {
  constexpr int64_t kMostLayers = 4096;
  PRISM_CHECK(layers > 0 && layers <= kMostLayers, operation, "{}: expected {} within 1-{}; found {}; correct it.",
              source, name, kMostLayers, layers);
  return static_cast<size_t>(layers);
}

ModelConfig read_config(const Family& family, const MemberReader& members) {
  members.expect<int64_t>("prism_format", 1);
  auto config = read_sizes(members, family.tied);
  config.layers.assign(read_layer_count(members), read_layer(family, members));
  family.read(members, config);
  return config;
}

std::optional<Json> write_config(const Family& family, const ModelConfig& config) {
  if (config.layers.empty()) return std::nullopt;
  const auto& layers = config.layers;
  // Stands for all layers, whose rotation a family may switch off; what differs is not read back.
  const LayerConfig& layer = *std::max_element(
      layers.begin(), layers.end(), [](const auto& a, const auto& b) { return a.rotary.turns() < b.rotary.turns(); });
  Json json = {{"architectures", {family.architecture}},
               {"model_type", family.model_type},
               {"prism_format", 1},
               {"vocab_size", config.vocab_size},
               {"hidden_size", config.d_model},
               {"num_hidden_layers", static_cast<int64_t>(layers.size())},
               {"max_position_embeddings", config.context},
               {"tie_word_embeddings", config.tied},
               {"hidden_act", "silu"},
               {"rms_norm_eps", config.norm_eps},
               {"initializer_range", config.init_std},
               {"base_heads", config.base_heads},
               {"allow_any", config.allow_any},
               {"use_cache", true},
               {"pad_token_id", nullptr},  // some families have one of their own by default
               {"num_attention_heads", layer.heads},
               {"num_key_value_heads", layer.kv_heads},
               {"head_dim", layer.head_dim},
               {"intermediate_size", layer.ffn.width}};
  write_rotary(json, layer.rotary);
  family.write(config, json);
  if (config.initialisation != ModelConfig().initialisation) json[kInitialisation] = config.initialisation;
  try {
    auto read = read_config(family, MemberReader(json, ""));
    complete(read);
    if (!equal_fields(read, config)) return std::nullopt;
  } catch (const InputError&) {
    return std::nullopt;
  }
  return json;
}

}  // namespace prism
