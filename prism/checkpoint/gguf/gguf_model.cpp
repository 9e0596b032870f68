#include "prism/checkpoint/gguf/gguf_model.h"

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "prism/checkpoint/gguf/gguf_layout.h"
#include "prism/checkpoint/gguf/gguf_vocabulary.h"
#include "prism/core/error.h"
#include "prism/core/text/names.h"
#include "prism/formats/gguf.h"
#include "prism/kernels/packed/packed.h"
#include "prism/kernels/quant/quant.h"

namespace prism {
namespace {

const Family& family_of(const GgufReader& reader) {
  const auto& name = reader.metadata().text(gguf_key::kArchitecture);
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
      : metadata_(reader.metadata()),
        path_(reader.path().string()),
        prefix_(metadata_.text(gguf_key::kArchitecture) + ".") {}

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
                "{}: expected {}{} to have a number for each of the {} layers; found {}; correct it.", path_, prefix_,
                key, layers, numbers.size());
    return numbers;
  }

 private:
  const GgufMetadata& metadata_;
  std::string path_, prefix_;
};

/// YaRN as the model's own config has it, which llama.cpp's converter writes to the keys with "yarn_". llama.cpp reads
/// those keys for none of the families: it takes betas of 32 and 1, a share of 1, and the formula of the attention
/// factor. attn_factor is llama.cpp's own, and multiplies.
void read_yarn_keys(const GgufReader& reader, const ArchitectureKeys& keys, RotaryConfig& rotary) {
  // llama.cpp takes the whole context too.
  rotary.original_context = keys.integer(gguf_key::kScalingContext, keys.integer(gguf_key::kContext));
  rotary.beta_fast = keys.real(gguf_key::kBetaFast, rotary.beta_fast);
  rotary.beta_slow = keys.real(gguf_key::kBetaSlow, rotary.beta_slow);
  const double share = keys.real(gguf_key::kYarnShare, 1);
  PRISM_CHECK(share == 1, "gguf", "{}: expected {} = 1; found {}; prism supports no other yet; choose another model.",
              reader.path().string(), gguf_key::kYarnShare, share);
  const double by_formula = rotary_attention_factor(rotary);
  const double factor =
      keys.real(gguf_key::kYarnAttentionFactor, by_formula) * keys.real(gguf_key::kAttentionFactor, 1);
  if (factor != by_formula) rotary.attention_factor = factor;
}

RotaryConfig rotary_of(const GgufReader& reader, const ArchitectureKeys& keys) {
  RotaryConfig rotary;
  // Without the key llama.cpp takes 10000 for every architecture.
  rotary.base = keys.real(gguf_key::kRotaryBase, rotary.base);
  // As in llama.cpp: the type is linear unless the file says otherwise, 0 is no factor, and none ignores it.
  double factor = keys.real(gguf_key::kScalingFactor, keys.real(gguf_key::kOldScalingFactor, 1));
  if (factor == 0) factor = 1;
  const auto scaling = keys.text(gguf_key::kScaling, factor == 1 ? "none" : "linear");
  PRISM_CHECK(scaling == "none" || scaling == "linear" || scaling == "yarn", "gguf",
              "{}: expected rope.scaling.type none, linear or yarn; found \"{}\"; prism supports no other yet; choose "
              "another model.",
              reader.path().string(), scaling);
  if (scaling != "none") {
    rotary.scaling = scaling;
    rotary.factor = factor;
  }
  if (rotary.scaling == "yarn") read_yarn_keys(reader, keys, rotary);
  if (reader.contains(kGgufFactors)) {
    const auto& tensor = reader.find(kGgufFactors);
    PRISM_CHECK(tensor.shape.size() == 1, "gguf",
                "{}: expected {} to have one dimension; found {}; convert the model again.", reader.path().string(),
                kGgufFactors, tensor.shape.size());
    std::vector<float> values(static_cast<size_t>(tensor.shape.back()));
    dequantise(tensor.type, tensor.data, values);
    rotary.factors.assign(values.begin(), values.end());
  }
  return rotary;
}

/// The complete config.
ModelConfig config_from_gguf(const GgufReader& reader) {
  const Family& family = family_of(reader);
  const ArchitectureKeys keys(reader);
  const auto path = reader.path().string();
  ModelConfig config;
  const size_t count = layer_count(keys.integer(gguf_key::kLayers), gguf_key::kLayers, path, "gguf");
  PRISM_CHECK(keys.integer(gguf_key::kExperts, 0) == 0, "gguf",
              "{}: expected a model without experts; found {}; prism supports none; choose another model.", path,
              keys.integer(gguf_key::kExperts, 0));
  const auto& embedding = reader.find(kGgufEmbedding);
  config.vocab_size = embedding.shape.empty() ? 0 : embedding.shape.front();
  config.d_model = keys.integer(gguf_key::kWidth);
  config.context = keys.integer(gguf_key::kContext);
  config.norm_eps = keys.real(gguf_key::kNormEps, 1e-5);
  config.tied = !reader.contains(kGgufHead);
  config.allow_any = true;
  const auto heads = keys.by_layer(gguf_key::kHeads, count, -1);
  const auto kv_heads = keys.by_layer(gguf_key::kKvHeads, count, 0);
  const auto widths = keys.by_layer(gguf_key::kFfnWidth, count, -1);
  const auto rotary = rotary_of(reader, keys);
  config.layers.resize(count);
  for (size_t i = 0; i < count; ++i) {
    auto& layer = config.layers[i];
    const auto has = [&](const char* part) { return reader.contains(fmt::format("blk.{}.{}", i, part)); };
    layer.heads = heads[i];
    layer.kv_heads = kv_heads[i];
    layer.head_dim = keys.integer(gguf_key::kKeyWidth, 0);
    layer.ffn.width = widths[i];
    layer.ffn.bias = has("ffn_down.bias");
    layer.qkv_bias = has("attn_q.bias");
    layer.output_bias = has("attn_output.bias");
    layer.qk_norm = has("attn_q_norm.weight");
    // No window: llama.cpp attends to all keys in these families, and its converter writes none, not even for Mistral.
    layer.rotary = turns_in_gguf(family, i) ? rotary : RotaryConfig{.kind = "none"};
  }
  try {
    complete(config);
  } catch (const InputError& error) {
    throw InputError("gguf", fmt::format("{}: {}", path, error.sentence()));
  }
  for (const auto& layer : config.layers)
    for (const char* key : {gguf_key::kValueWidth, gguf_key::kRotaryWidth})
      PRISM_CHECK(
          keys.integer(key, layer.head_dim) == layer.head_dim, "gguf",
          "{}: expected {} = {}, the width of a head; found {}; prism supports no other yet; choose another model.",
          path, key, layer.head_dim, keys.integer(key, layer.head_dim));
  return config;
}

/// The tensors of a file as those of a model folder, in float32.
class GgufSource : public TensorSource {
 public:
  GgufSource(std::shared_ptr<const GgufReader> reader, const ModelConfig& config) : reader_(std::move(reader)) {
    const Family& family = family_of(*reader_);
    for (const auto& tensor : reader_->tensors()) {
      if (tensor.name == kGgufFactors) continue;
      const auto name = name_from_gguf(tensor.name);
      PRISM_CHECK(name && name->layer.value_or(0) < config.layers.size(), "gguf",
                  "{}: expected tensors of a {}; found \"{}\"; prism supports no such part yet; choose another model.",
                  path(), family.gguf, tensor.name);
      const bool is_new = stored_.emplace(name->folder, Stored{&tensor, reordered_heads(*name, family, config)}).second;
      PRISM_CHECK(
          is_new, "gguf",
          "{}: expected one name for each tensor; found \"{}\", which another name also stands for; convert the "
          "model again.",
          path(), tensor.name);
      names_.push_back(name->folder);
    }
  }

  std::vector<std::string> names() const override { return names_; }
  torch::Tensor read(const std::string& name) const override {
    const auto found = stored_.find(name);
    PRISM_CHECK(found != stored_.end(), "gguf", "{}: expected a tensor for {}; found none; restore the whole file.",
                path(), name);
    const auto* tensor = found->second.tensor;
    auto values = torch::empty(tensor->shape, torch::kFloat);
    dequantise(tensor->type, tensor->data, {values.mutable_data_ptr<float>(), static_cast<size_t>(values.numel())});
    return in_order(found->second, values);
  }
  std::optional<StoredBlocks> read_blocks(const std::string& name) const override {
    const auto found = stored_.find(name);
    if (found == stored_.end()) return std::nullopt;
    const auto* tensor = found->second.tensor;
    if (!packed::can_pack(tensor->type) || tensor->shape.size() != 2) return std::nullopt;
    const int64_t rows = tensor->shape[0], bytes = rows == 0 ? 0 : std::ssize(tensor->data) / rows;
    auto* data = const_cast<std::byte*>(tensor->data.data());
    const auto stored = torch::from_blob(data, {rows, bytes}, torch::kByte);
    return StoredBlocks{tensor->type, rows, tensor->shape[1], in_order(found->second, stored)};
  }
  std::string rounded_type(const std::string& name) const override {
    const auto found = stored_.find(name);
    if (found == stored_.end() || found->second.tensor->type == BlockType::bf16) return {};
    return std::string(block_layout(found->second.tensor->type).name);
  }
  std::string path() const override { return reader_->path().string(); }
  void check_whole() const override { reader_->check_whole(); }

 private:
  struct Stored {
    const GgufTensor* tensor = nullptr;
    int64_t reordered_heads = 0;  ///< heads whose rows are to be sorted; 0: none
  };

  /// The rows of a tensor in the order of model folders.
  torch::Tensor in_order(const Stored& stored, const torch::Tensor& rows) const {
    const int64_t heads = stored.reordered_heads;
    if (heads == 0) return rows;
    PRISM_CHECK(rows.dim() > 0 && rows.size(0) % (2 * heads) == 0, "gguf",
                "{}: {}: expected rows for {} heads of an even width; found {}; restore the file.", path(),
                stored.tensor->name, heads, rows.dim() == 0 ? 0 : rows.size(0));
    return rows_from_neighbours(rows, heads);
  }

  std::shared_ptr<const GgufReader> reader_;
  std::vector<std::string> names_;
  std::map<std::string, Stored> stored_;
};

class StoredGguf : public StoredModel {
 public:
  explicit StoredGguf(const std::filesystem::path& file)
      : StoredModel(file), reader_(std::make_shared<const GgufReader>(file)) {}

  std::unique_ptr<TensorSource> weights() override { return std::make_unique<GgufSource>(reader_, config()); }
  std::optional<Tokenizer> tokenizer() const override {
    const auto vocabulary = vocabulary_from_gguf(*reader_);
    return vocabulary ? std::optional(Tokenizer::from_ggml(*vocabulary, path().string())) : std::nullopt;
  }

 protected:
  ModelConfig read_config() const override { return config_from_gguf(*reader_); }

 private:
  std::shared_ptr<const GgufReader> reader_;
};

}  // namespace

bool is_gguf(const std::filesystem::path& path) {
  return path.extension() == ".gguf" && std::filesystem::is_regular_file(path);
}

std::unique_ptr<StoredModel> open_gguf(const std::filesystem::path& path) {
  return std::make_unique<StoredGguf>(path);
}

}  // namespace prism
