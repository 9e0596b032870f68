#include "prism/checkpoint/gguf_model.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <string_view>

#include "prism/checkpoint/families/family.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/text/names.h"
#include "prism/kernels/quant/quant.h"

namespace prism {
namespace {

constexpr const char *kEmbedding = "token_embd.weight", *kHead = "output.weight", *kFactors = "rope_freqs.weight";

struct NamePair {
  std::string_view gguf, ours;
};

/// Names outside the layers, and names within "blk.N." and "model.layers.N.".
constexpr NamePair kOutside[] = {
    {kEmbedding, "model.embed_tokens.weight"}, {"output_norm.weight", "model.norm.weight"}, {kHead, "lm_head.weight"}};
constexpr NamePair kInLayer[] = {{"attn_norm", "input_layernorm"},    {"attn_q", "self_attn.q_proj"},
                                 {"attn_k", "self_attn.k_proj"},      {"attn_v", "self_attn.v_proj"},
                                 {"attn_output", "self_attn.o_proj"}, {"attn_q_norm", "self_attn.q_norm"},
                                 {"attn_k_norm", "self_attn.k_norm"}, {"ffn_norm", "post_attention_layernorm"},
                                 {"ffn_gate", "mlp.gate_proj"},       {"ffn_up", "mlp.up_proj"},
                                 {"ffn_down", "mlp.down_proj"}};

const Family& family_of(const GgufReader& reader) {
  const auto& name = reader.metadata().text("general.architecture");
  const auto all = families();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Family& row) { return row.gguf == name; });
  if (found != all.end()) return *found;
  std::vector<std::string> known;
  for (const auto& family : all)
    if (std::find(known.begin(), known.end(), family.gguf) == known.end()) known.emplace_back(family.gguf);
  throw InputError("gguf",
                   fmt::format("{}: expected general.architecture {}; found \"{}\"; prism supports no other yet; "
                               "choose another model.",
                               reader.path().string(), join_names(known), name));
}

/// Metadata under the architecture's prefix.
class ArchitectureKeys {
 public:
  explicit ArchitectureKeys(const GgufReader& reader)
      : metadata_(reader.metadata()), prefix_(metadata_.text("general.architecture") + ".") {}

  int64_t integer(const char* key) const { return metadata_.integer(prefix_ + key); }
  int64_t integer(const char* key, int64_t otherwise) const {
    return metadata_.find_integer(prefix_ + key).value_or(otherwise);
  }
  double real(const char* key, double otherwise) const {
    return metadata_.find_real(prefix_ + key).value_or(otherwise);
  }
  std::string text(const char* key, const char* otherwise) const {
    return metadata_.find_text(prefix_ + key).value_or(otherwise);
  }
  /// A number for each layer, which the file may give once for all. @param otherwise  if there is none; -1: required.
  std::vector<int64_t> by_layer(const char* key, size_t layers, int64_t otherwise) const {
    const auto* value = metadata_.find(prefix_ + key);
    if (value == nullptr && otherwise >= 0) return std::vector<int64_t>(layers, otherwise);
    if (value == nullptr || !std::holds_alternative<GgufArray>(*value))
      return std::vector<int64_t>(layers, integer(key));
    auto numbers = metadata_.integers(prefix_ + key);
    PRISM_CHECK(numbers.size() == layers, "gguf",
                "{}{}: expected a number for each of {} layers; found {}; correct it.", prefix_, key, layers,
                numbers.size());
    return numbers;
  }

 private:
  const GgufMetadata& metadata_;
  std::string prefix_;
};

RotaryConfig rotary_of(const GgufReader& reader, const ArchitectureKeys& keys, const Family& family) {
  RotaryConfig rotary;
  rotary.base = keys.real("rope.freq_base", family.rotary_base);
  const auto scaling = keys.text("rope.scaling.type", "none");
  // A factor without a type is the older spelling of a linear scaling.
  const double factor = keys.real("rope.scaling.factor", keys.real("rope.scale_linear", 1));
  PRISM_CHECK(scaling == "none" || scaling == "linear" || scaling == "yarn", "gguf",
              "{}: expected rope.scaling.type none, linear or yarn; found \"{}\"; prism supports no other yet; choose "
              "another model.",
              reader.path().string(), scaling);
  if (scaling != "none" || factor != 1) {
    rotary.scaling = scaling == "none" ? "linear" : scaling;
    rotary.factor = factor;
  }
  if (rotary.scaling == "yarn") {
    rotary.original_context = keys.integer("rope.scaling.original_context_length", 0);
    rotary.beta_fast = keys.real("rope.scaling.yarn_beta_fast", rotary.beta_fast);
    rotary.beta_slow = keys.real("rope.scaling.yarn_beta_slow", rotary.beta_slow);
    const double more = keys.real("rope.scaling.attn_factor", 1);
    if (more != 1) rotary.attention_factor = more * rotary_attention_factor(rotary);
  }
  if (reader.contains(kFactors)) {
    const auto& tensor = reader.find(kFactors);
    std::vector<float> values(static_cast<size_t>(tensor.shape.empty() ? 1 : tensor.shape.back()));
    dequantise(tensor.type, tensor.data, values);
    rotary.factors.assign(values.begin(), values.end());
  }
  return rotary;
}

/// Splits "blk.12.attn_q.weight" into 12, "attn_q" and ".weight".
struct LayerName {
  size_t layer = 0;
  std::string_view part, kind;
};
std::optional<LayerName> layer_name(std::string_view name) {
  constexpr std::string_view kStart = "blk.";
  if (!name.starts_with(kStart)) return std::nullopt;
  LayerName found;
  const auto* begin = name.data() + kStart.size();
  const auto [end, code] = std::from_chars(begin, name.data() + name.size(), found.layer);
  if (code != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  const std::string_view rest = name.substr(static_cast<size_t>(end + 1 - name.data()));
  const size_t dot = rest.rfind('.');
  if (dot == std::string_view::npos) return std::nullopt;
  found.part = rest.substr(0, dot);
  found.kind = rest.substr(dot);
  return found;
}

}  // namespace

bool is_gguf(const std::filesystem::path& path) {
  return path.extension() == ".gguf" && std::filesystem::is_regular_file(path);
}

ModelConfig config_from_gguf(const GgufReader& reader) {
  const Family& family = family_of(reader);
  const ArchitectureKeys keys(reader);
  const auto path = reader.path().string();
  ModelConfig config;
  const auto layers = keys.integer("block_count");
  PRISM_CHECK(layers > 0 && layers <= 4096, "gguf", "{}: expected block_count within 1-4096; found {}; correct it.",
              path, layers);
  const auto count = static_cast<size_t>(layers);
  PRISM_CHECK(keys.integer("expert_count", 0) == 0, "gguf",
              "{}: expected a model without experts; found {}; prism supports none; choose another model.", path,
              keys.integer("expert_count", 0));
  const auto& embedding = reader.find(kEmbedding);
  config.vocab_size = embedding.shape.empty() ? 0 : embedding.shape.front();
  config.d_model = keys.integer("embedding_length");
  config.context = keys.integer("context_length");
  config.norm_eps = keys.real("attention.layer_norm_rms_epsilon", 1e-5);
  config.tied = !reader.contains(kHead);
  config.allow_any = true;
  const auto heads = keys.by_layer("attention.head_count", count, -1);
  const auto kv_heads = keys.by_layer("attention.head_count_kv", count, 0);
  const auto widths = keys.by_layer("feed_forward_length", count, -1);
  const auto rotary = rotary_of(reader, keys, family);
  config.layers.resize(count);
  for (size_t i = 0; i < count; ++i) {
    auto& layer = config.layers[i];
    const auto has = [&](const char* part) { return reader.contains(fmt::format("blk.{}.{}", i, part)); };
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i];
    layer.head_dim = keys.integer("attention.key_length", 0);
    layer.ffn.width = widths[i];
    layer.ffn.bias = has("ffn_down.bias");
    layer.qkv_bias = has("attn_q.bias");
    layer.output_bias = has("attn_output.bias");
    layer.qk_norm = has("attn_q_norm.weight");
    layer.window = keys.integer("attention.sliding_window", 0);
    // llama.cpp knows these layers by the architecture alone.
    layer.rotary = family.gguf_unturned > 0 && static_cast<int64_t>(i + 1) % family.gguf_unturned == 0
                       ? RotaryConfig{.kind = "none"}
                       : rotary;
  }
  try {
    complete(config);
  } catch (const InputError& error) {
    throw InputError("gguf", fmt::format("{}: {}", path, error.sentence()));
  }
  for (const auto& layer : config.layers)
    for (const char* key : {"attention.value_length", "rope.dimension_count"})
      PRISM_CHECK(
          keys.integer(key, layer.head_dim) == layer.head_dim, "gguf",
          "{}: expected {} = {}, the width of a head; found {}; prism supports no other yet; choose another model.",
          path, key, layer.head_dim, keys.integer(key, layer.head_dim));
  return config;
}

std::optional<GgmlVocabulary> vocabulary_from_gguf(const GgufReader& reader) {
  const auto& metadata = reader.metadata();
  const std::string start = "tokenizer.ggml.";
  if (!metadata.contains(start + "tokens")) return std::nullopt;
  GgmlVocabulary found;
  found.model = metadata.text(start + "model");
  found.pre = metadata.find_text(start + "pre").value_or("");
  found.tokens = metadata.texts(start + "tokens");
  for (const double score : metadata.find_reals(start + "scores").value_or(std::vector<double>()))
    found.scores.push_back(static_cast<float>(score));
  for (const int64_t type : metadata.find_integers(start + "token_type").value_or(std::vector<int64_t>()))
    found.types.push_back(static_cast<int32_t>(type));
  if (const auto* merges = metadata.find_texts(start + "merges")) found.merges = *merges;
  for (const auto& [name, id] : {std::pair{"bos", &found.bos_token_id},
                                 {"eos", &found.eos_token_id},
                                 {"eot", &found.eot_token_id},
                                 {"eom", &found.eom_token_id},
                                 {"unknown", &found.unknown_token_id},
                                 {"padding", &found.padding_token_id}})
    *id = metadata.find_integer(start + name + "_token_id");
  for (const auto& [name, flag] : {std::pair{"add_bos_token", &found.add_bos_token},
                                   {"add_eos_token", &found.add_eos_token},
                                   {"add_space_prefix", &found.add_space_prefix},
                                   {"remove_extra_whitespaces", &found.remove_extra_whitespaces}})
    *flag = metadata.find_flag(start + name);
  found.chat_template = metadata.find_text("tokenizer.chat_template");
  return found;
}

GgufSource::GgufSource(const std::filesystem::path& path) : reader_(path) {
  const auto config = config_from_gguf(reader_);
  const bool sorts = family_of(reader_).gguf_pairs_neighbours;
  for (const auto& tensor : reader_.tensors()) {
    if (tensor.name == kFactors) continue;
    std::string name;
    Stored stored{&tensor, 0};
    if (const auto found = layer_name(tensor.name); found && found->layer < config.layers.size()) {
      for (const auto& pair : kInLayer)
        if (pair.gguf == found->part) name = fmt::format("model.layers.{}.{}{}", found->layer, pair.ours, found->kind);
      const auto& layer = config.layers[found->layer];
      if (sorts && found->part == "attn_q") stored.turned_heads = layer.heads;
      if (sorts && found->part == "attn_k") stored.turned_heads = layer.kv_heads;
    } else {
      for (const auto& pair : kOutside)
        if (pair.gguf == tensor.name) name = pair.ours;
    }
    PRISM_CHECK(!name.empty(), "gguf",
                "{}: expected tensors of a {}; found \"{}\"; prism supports no such part yet; choose another model.",
                reader_.path().string(), reader_.metadata().text("general.architecture"), tensor.name);
    names_.push_back(name);
    stored_[name] = stored;
  }
}

torch::Tensor GgufSource::read(const std::string& name) const {
  const auto found = stored_.find(name);
  PRISM_CHECK(found != stored_.end(), "gguf", "{}: expected a tensor for {}; found none; restore the whole file.",
              path(), name);
  const auto& [tensor, turned_heads] = found->second;
  auto values = torch::empty(tensor->shape, torch::kFloat);
  dequantise(tensor->type, tensor->data, {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
  if (turned_heads == 0) return values;
  const auto shape = values.sizes().vec();
  PRISM_CHECK(!shape.empty() && shape.front() % (2 * turned_heads) == 0, "gguf",
              "{}: {}: expected rows for {} heads of an even width; found {}; restore the file.", path(), tensor->name,
              turned_heads, shape.empty() ? 0 : shape.front());
  return values.view({turned_heads, shape.front() / turned_heads / 2, 2, -1}).transpose(1, 2).reshape(shape);
}

}  // namespace prism
