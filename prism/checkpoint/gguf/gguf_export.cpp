#include "prism/checkpoint/gguf/gguf_export.h"

#include <ATen/Functions.h>

#include <cmath>
#include <limits>
#include <utility>

#include "prism/checkpoint/gguf/gguf_layout.h"
#include "prism/checkpoint/gguf/gguf_vocabulary.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/formats/gguf_writer.h"
#include "prism/kernels/quant/quant.h"
#include "prism/tokenizer/sources/ggml_export.h"

namespace prism {
namespace {

/// What a layer may have that no family of GGUF has.
struct UnknownPart {
  const char* words;
  bool (*has)(const LayerConfig& layer);
};
constexpr UnknownPart kUnknownParts[] = {
    {"head budgets", [](const LayerConfig& layer) { return layer.budget.is_on(); }},
    {"mirrored layers", [](const LayerConfig& layer) { return layer.mirror_of >= 0; }},
    {"positions in words", [](const LayerConfig& layer) { return layer.rotary.word_dims > 0; }},
    {"sliding windows", [](const LayerConfig& layer) { return layer.window > 0; }},
    {"feed-forward parts of another kind than swiglu",
     [](const LayerConfig& layer) { return layer.ffn.kind != FfnConfig().kind; }},
    {"layers without an output projection", [](const LayerConfig& layer) { return !layer.output_projection; }},
    {"layers with another norm than RMSNorm",
     [](const LayerConfig& layer) { return layer.norm != LayerConfig().norm; }},
    {"layers with post-norm", [](const LayerConfig& layer) { return layer.norm_place != LayerConfig().norm_place; }}};

/// A number that a family has once for all layers; std::nullopt if they differ.
std::optional<int64_t> common_number(const ModelConfig& config, int64_t (*of)(const LayerConfig&)) {
  std::optional<int64_t> number;
  for (const auto& layer : config.layers) {
    if (number && *number != of(layer)) return std::nullopt;
    number = of(layer);
  }
  return number;
}

int64_t heads_of_layer(const LayerConfig& layer) {
  return layer.heads;
}
int64_t kv_heads_of_layer(const LayerConfig& layer) {
  return layer.kv_heads;
}
int64_t head_dim_of_layer(const LayerConfig& layer) {
  return layer.head_dim;
}
int64_t ffn_width_of_layer(const LayerConfig& layer) {
  return layer.ffn.width;
}

/// What no family of GGUF can express in a model; empty if no single part is the reason.
std::string unknown_part(const ModelConfig& config) {
  if (config.classes > 0) return "a classifier";
  if (config.skip > 0) return "a second output head";
  if (config.learned_positions || config.sinusoidal_positions) return "vectors of positions added to the embedding";
  if (!config.final_norm) return "no norm before the head";
  for (const auto& part : kUnknownParts)
    for (const auto& layer : config.layers)
      if (part.has(layer)) return part.words;
  for (const auto of : {heads_of_layer, kv_heads_of_layer, head_dim_of_layer, ffn_width_of_layer})
    if (!common_number(config, of)) return "layers of different numbers of heads or widths, as in a head schedule";
  return "";
}

/// What llama.cpp cannot express in a model that the family otherwise can; empty if nothing.
std::string unknown_part(const Family& family, const ModelConfig& config) {
  for (size_t i = 0; i < config.layers.size(); ++i) {
    const auto& layer = config.layers[i];
    if (layer.rotary.turns() != turns_in_gguf(family, i))
      return fmt::format("layers without rotation that are not every {}th", family.gguf_unturned);
    if ((layer.output_bias || layer.ffn.bias) && !family.gguf_biases)
      return fmt::format("biases of W_O or of the feed-forward part in a {}", family.gguf);
    if ((layer.rotary.scaling == "llama3" || !layer.rotary.factors.empty()) && !family.gguf_factors)
      return fmt::format("a scaling of the rotary encoding by pairs in a {}", family.gguf);
  }
  return "";
}

/// The rotary encoding of all layers that turn; std::nullopt if they differ.
std::optional<RotaryConfig> common_rotary(const ModelConfig& config) {
  std::optional<RotaryConfig> common;
  for (const auto& layer : config.layers) {
    if (!layer.rotary.turns()) continue;
    if (common && *common != layer.rotary) return std::nullopt;
    common = layer.rotary;
  }
  return common;
}

/// The first family that llama.cpp can run the model as.
const Family& gguf_family(const ModelConfig& config, const std::string& path) {
  std::string found = unknown_part(config);
  // The files of families have no divisors of angles, but those of GGUF do.
  auto plain = config;
  for (auto& layer : plain.layers) layer.rotary.factors.clear();
  if (found.empty() && !common_rotary(config)) found = "layers with no rotary encoding, or with different ones";
  if (found.empty()) {
    for (const auto& family : families()) {
      if (!write_config(family, plain)) continue;
      const auto reason = unknown_part(family, config);
      if (reason.empty()) return family;
      if (found.empty()) found = reason;
    }
  }
  if (found.empty()) found = "a combination of parts that none of the families has";
  throw InputError("gguf", fmt::format("{}: expected a model that GGUF can express; found {}; write a model folder "
                                       "instead, with a name that does not end in .gguf.",
                                       path, found));
}

/// Divisors of the angle of each pair, where no key of the metadata has the scaling: as llama.cpp stores Llama 3.1's.
/// Empty if there are none.
std::vector<float> pair_divisors(const RotaryConfig& rotary, int64_t head_dim) {
  if (rotary.scaling != "llama3") return {rotary.factors.begin(), rotary.factors.end()};
  const auto plain = rotary_angles({.base = rotary.base}, head_dim);
  const auto divisors = (plain / rotary_angles(rotary, head_dim)).to(torch::kFloat).contiguous();
  const auto* values = divisors.const_data_ptr<float>();
  return {values, values + divisors.numel()};
}

/// general.file_type. Source: llama.h, enum llama_ftype.
uint32_t file_type(BlockType type) {
  switch (type) {
    case BlockType::f16:
      return 1;
    case BlockType::q8_0:
      return 7;
    case BlockType::bf16:
      return 32;
    default:
      return 0;
  }
}

void put_rotary(const RotaryConfig& rotary, const std::string& prefix, GgufPairs& pairs) {
  const auto put = [&](const char* key, double value) { pairs.emplace_back(prefix + key, static_cast<float>(value)); };
  put(gguf_key::kRotaryBase, rotary.base);
  if (rotary.scaling != "linear" && rotary.scaling != "yarn") return;
  pairs.emplace_back(prefix + gguf_key::kScaling, rotary.scaling);
  put(gguf_key::kScalingFactor, rotary.factor);
  if (rotary.scaling == "linear") return;
  pairs.emplace_back(prefix + gguf_key::kScalingContext, static_cast<uint32_t>(rotary.original_context));
  put(gguf_key::kBetaFast, rotary.beta_fast);
  put(gguf_key::kBetaSlow, rotary.beta_slow);
  auto by_formula = rotary;
  by_formula.attention_factor = 0;
  const double more = rotary_attention_factor(rotary) / rotary_attention_factor(by_formula);
  if (more != 1) put(gguf_key::kAttentionFactor, more);
}

GgufPairs model_pairs(const ModelConfig& config, const Family& family, const RotaryConfig& rotary,
                      const GgufOptions& options) {
  GgufPairs pairs = {{gguf_key::kArchitecture, std::string(family.gguf)},
                     {"general.type", std::string("model")},
                     {"general.name", options.name},
                     {"general.file_type", file_type(options.type)},
                     {"general.quantization_version", uint32_t{2}}};
  const std::string prefix = std::string(family.gguf) + ".";
  const auto put = [&](const char* key, int64_t value) {
    pairs.emplace_back(prefix + key, static_cast<uint32_t>(value));
  };
  put(gguf_key::kLayers, std::ssize(config.layers));
  put(gguf_key::kContext, config.context);
  put(gguf_key::kWidth, config.d_model);
  put(gguf_key::kFfnWidth, common_number(config, ffn_width_of_layer).value());
  put(gguf_key::kHeads, common_number(config, heads_of_layer).value());
  put(gguf_key::kKvHeads, common_number(config, kv_heads_of_layer).value());
  for (const char* key : {gguf_key::kKeyWidth, gguf_key::kValueWidth, gguf_key::kRotaryWidth})
    put(key, common_number(config, head_dim_of_layer).value());
  pairs.emplace_back(prefix + gguf_key::kNormEps, static_cast<float>(config.norm_eps));
  put_rotary(rotary, prefix, pairs);
  put(gguf_key::kVocabSize, config.vocab_size);
  return pairs;
}

void put_tokenizer(const Tokenizer* tokenizer, int64_t vocab_size, GgufPairs& pairs) {
  if (tokenizer == nullptr) return put_no_vocabulary(pairs);
  auto vocabulary = tokenizer->ggml_vocabulary();
  add_unused_tokens(vocabulary, vocab_size);
  set_special_ids(vocabulary, tokenizer->special_ids());
  vocabulary.chat_template = tokenizer->chat_template();
  put_vocabulary(vocabulary, pairs);
}

/// A tensor of the file before it is packed.
struct UnpackedTensor {
  GgufTensor tensor;
  torch::Tensor values;
  int64_t reordered_heads = 0;
};

BlockType type_of_rows(BlockType wanted, const std::vector<int64_t>& shape) {
  if (shape.size() < 2) return BlockType::f32;  // llama.cpp adds norms and biases in float32
  return shape.back() % block_layout(wanted).elements == 0 ? wanted : BlockType::f16;
}

std::vector<UnpackedTensor> unpacked_tensors(const Trunk& model, const Family& family, BlockType type) {
  std::vector<UnpackedTensor> list;
  for (const auto& [folder_name, values] : file_tensors(model.weights())) {
    const auto name = name_from_folder(folder_name);
    PRISM_ASSERT(name, "gguf", "{}: expected a name that GGUF has", folder_name);
    const auto shape = values.sizes().vec();
    list.push_back({{.name = name->gguf, .type = type_of_rows(type, shape), .shape = shape, .data = {}},
                    values,
                    reordered_heads(*name, family, model.config())});
  }
  return list;
}

/// The smallest magnitude that is rounded to infinity. Q8_0 stores a 127th of a block's largest magnitude as F16.
double first_overflow(BlockType type) {
  constexpr double kF16 = 65520, kBf16 = 0x1.FFp127;
  switch (type) {
    case BlockType::f16:
      return kF16;
    case BlockType::bf16:
      return kBf16;
    case BlockType::q8_0:
      return 127 * kF16;
    default:
      return std::numeric_limits<double>::infinity();
  }
}

std::vector<std::byte> packed(const UnpackedTensor& unpacked) {
  const auto& [tensor, source, heads] = unpacked;
  auto values = source.detach().to(torch::kCPU, torch::kFloat).contiguous();
  if (heads > 0) values = rows_to_neighbours(values, heads).contiguous();
  const std::span<const float> floats(values.const_data_ptr<float>(), static_cast<size_t>(values.numel()));
  const double limit = first_overflow(tensor.type);
  for (const float value : floats)
    PRISM_CHECK(!std::isfinite(value) || std::abs(value) < limit, "gguf",
                "{}: expected weights within the range of {}; found {}; choose bfloat16 or float32.", tensor.name,
                block_layout(tensor.type).name, value);
  std::vector<std::byte> bytes(static_cast<size_t>(block_tensor_bytes(tensor.type, tensor.shape).value()));
  quantise(tensor.type, floats, bytes);
  return bytes;
}

}  // namespace

std::vector<std::string> save_gguf(const std::filesystem::path& path, const Trunk& model, const Tokenizer* tokenizer,
                                   const GgufOptions& options) {
  const auto& config = model.config();
  const Family& family = gguf_family(config, path.string());
  const auto rotary = common_rotary(config).value();
  auto pairs = model_pairs(config, family, rotary, options);
  put_tokenizer(tokenizer, config.vocab_size, pairs);
  auto list = unpacked_tensors(model, family, options.type);
  auto divisors = pair_divisors(rotary, common_number(config, head_dim_of_layer).value());
  if (!divisors.empty()) {
    const auto count = std::ssize(divisors);
    list.push_back({{.name = kGgufFactors, .type = BlockType::f32, .shape = {count}, .data = {}},
                    torch::from_blob(divisors.data(), {count}, torch::kFloat)});
  }
  std::vector<GgufTensor> tensors;
  std::vector<std::string> mixed;
  for (const auto& unpacked : list) {
    tensors.push_back(unpacked.tensor);
    if (unpacked.tensor.shape.size() > 1 && unpacked.tensor.type != options.type) mixed.push_back(unpacked.tensor.name);
  }
  GgufWriter writer(path, pairs, tensors);
  for (const auto& unpacked : list) writer.write(packed(unpacked));
  writer.commit();
  return mixed;
}

}  // namespace prism
