#include "prism/checkpoint/llama2c_model.h"

#include <ATen/Functions.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "prism/checkpoint/gguf/gguf_layout.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/mapped_file.h"
#include "prism/core/numbers/block_type.h"
#include "prism/core/text/field_names.h"

namespace prism {
namespace {

constexpr int32_t kLargestNumber = 1 << 24;

/// d_model, ffn width, layers, heads, kv_heads, vocabulary, context.
using Llama2cHeader = std::array<int32_t, 7>;

bool in_range(int32_t number) {
  return number > 0 && number <= kLargestNumber;
}

/// std::nullopt if the file is too short.
std::optional<Llama2cHeader> read_llama2c_header(std::span<const std::byte> bytes) {
  Llama2cHeader header{};
  if (bytes.size() < sizeof header) return std::nullopt;
  std::memcpy(header.data(), bytes.data(), sizeof header);
  return header;
}

ModelConfig config_from_llama2c(std::span<const std::byte> bytes, const std::string& path) {
  const auto header = read_llama2c_header(bytes);
  PRISM_CHECK(header, "llama2c", "{}: expected at least {} bytes; found {}; name a whole file.", path,
              sizeof(Llama2cHeader), bytes.size());
  auto [d_model, ffn_width, layers, heads, kv_heads, vocab_size, context] = *header;
  ModelConfig config;
  config.tied = vocab_size > 0;
  if (vocab_size < 0 && vocab_size >= -kLargestNumber) vocab_size = -vocab_size;
  for (const auto& [name, value] : {std::pair{"width", d_model},
                                    {"feed-forward width", ffn_width},
                                    {"number of layers", layers},
                                    {"number of heads", heads},
                                    {"number of key/value heads", kv_heads},
                                    {"vocabulary", vocab_size},
                                    {"context", context}})
    PRISM_CHECK(in_range(value), "llama2c",
                "{}: expected a checkpoint of llama2.c, whose {} is within 1-{}; found {}; name another file.", path,
                name, kLargestNumber, value);
  config.vocab_size = vocab_size;
  config.d_model = d_model;
  config.context = context;
  config.norm_eps = 1e-5;
  config.allow_any = true;
  config.layers.resize(layer_count(layers, "a number of layers", path, "llama2c"));
  for (auto& layer : config.layers) {
    layer.heads = heads;
    layer.kv_heads = kv_heads;
    layer.ffn.width = ffn_width;
  }
  naming_field(path, [&] { complete(config); });
  return config;
}

struct LayerSizes {
  int64_t width, kv_width, ffn_width;
};

/// A matrix, or norm, that each layer has.
struct LayerTensor {
  const char* name;
  int64_t LayerSizes::*rows;
  int64_t LayerSizes::*columns = nullptr;  ///< null: a norm
  int64_t LayerConfig::*heads = nullptr;   ///< whose rows are to be sorted, if any
};

/// In the order of the file.
constexpr LayerTensor kLayerTensors[] = {
    {"input_layernorm", &LayerSizes::width},
    {"self_attn.q_proj", &LayerSizes::width, &LayerSizes::width, &LayerConfig::heads},
    {"self_attn.k_proj", &LayerSizes::kv_width, &LayerSizes::width, &LayerConfig::kv_heads},
    {"self_attn.v_proj", &LayerSizes::kv_width, &LayerSizes::width},
    {"self_attn.o_proj", &LayerSizes::width, &LayerSizes::width},
    {"post_attention_layernorm", &LayerSizes::width},
    {"mlp.gate_proj", &LayerSizes::ffn_width, &LayerSizes::width},
    {"mlp.down_proj", &LayerSizes::width, &LayerSizes::ffn_width},
    {"mlp.up_proj", &LayerSizes::ffn_width, &LayerSizes::width}};

/// The tensors of a checkpoint, whose place and size follow from the config.
class Llama2cSource : public TensorSource {
 public:
  Llama2cSource(MappedFile file, std::string path, const ModelConfig& config)
      : file_(std::move(file)), path_(std::move(path)), left_(file_.bytes().subspan(sizeof(Llama2cHeader))) {
    const int64_t width = config.d_model;
    add("model.embed_tokens.weight", {config.vocab_size, width});
    add_layers(config);
    add("model.norm.weight", {width});
    const auto header = read_llama2c_header(file_.bytes()).value();
    take({config.context, header[0] / header[3]});  // cosines and sines: d_model / heads for each position
    if (!config.tied) add("lm_head.weight", {config.vocab_size, width});
    PRISM_CHECK(left_.empty(), "llama2c",
                "{}: expected a file of the size that its header says; found {} more bytes; name another file.", path_,
                left_.size());
  }

  std::vector<std::string> names() const override { return names_; }
  torch::Tensor read(const std::string& name) const override {
    const auto found = stored_.find(name);
    PRISM_CHECK(found != stored_.end(), "llama2c", "{}: expected a tensor for {}; found none; name another file.",
                path_, name);
    const auto& [shape, bytes, heads] = found->second;
    auto values = torch::empty(shape, torch::kFloat);
    std::memcpy(values.mutable_data_ptr(), bytes.data(), bytes.size());
    // llama2.c turns neighbouring features, as llama.cpp does.
    return heads > 0 ? rows_from_neighbours(values, heads) : values;
  }
  std::string path() const override { return path_; }
  void check_whole() const override { file_.check_whole(); }

 private:
  struct Stored {
    std::vector<int64_t> shape;
    std::span<const std::byte> bytes;
    int64_t reordered_heads = 0;  ///< heads whose rows are to be sorted; 0: none
  };
  void add_layers(const ModelConfig& config) {
    for (const auto& part : kLayerTensors)
      for (size_t i = 0; i < config.layers.size(); ++i) {
        const auto& layer = config.layers[i];
        const LayerSizes sizes{config.d_model, layer.kv_heads * layer.head_dim, layer.ffn.width};
        std::vector<int64_t> shape = {sizes.*part.rows};
        if (part.columns != nullptr) shape.push_back(sizes.*part.columns);
        add(fmt::format("model.layers.{}.{}.weight", i, part.name), shape,
            part.heads == nullptr ? 0 : layer.*part.heads);
      }
  }
  void add(const std::string& name, const std::vector<int64_t>& shape, int64_t reordered_heads = 0) {
    stored_[name] = {shape, take(shape), reordered_heads};
    names_.push_back(name);
  }
  /// The next bytes of the file, which hold values of this shape.
  std::span<const std::byte> take(const std::vector<int64_t>& shape) {
    const auto count = block_tensor_bytes(BlockType::f32, shape);  // std::nullopt: more than int64 can count
    PRISM_CHECK(count && static_cast<uint64_t>(*count) <= left_.size(), "llama2c",
                "{}: expected a file of the size that its header says; found it cut short; name a whole file.", path_);
    const auto taken = left_.first(static_cast<size_t>(*count));
    left_ = left_.subspan(taken.size());
    return taken;
  }

  MappedFile file_;
  std::string path_;
  std::span<const std::byte> left_;  ///< not yet taken
  std::vector<std::string> names_;
  std::map<std::string, Stored> stored_;
};

class StoredLlama2c : public StoredModel {
 public:
  explicit StoredLlama2c(const std::filesystem::path& file) : StoredModel(file), file_(file) {}

  std::unique_ptr<TensorSource> weights() override {
    return std::make_unique<Llama2cSource>(file_, path().string(), config());
  }
  std::optional<Tokenizer> tokenizer() const override {
    const auto file = std::filesystem::absolute(path()).parent_path() / "tokenizer.bin";
    PRISM_CHECK(is_there(file), "llama2c", "expected the tokenizer of {} in {}; found none; copy it there.",
                path().string(), file.string());
    return Tokenizer::load(file);
  }

 protected:
  ModelConfig read_config() const override { return config_from_llama2c(file_.bytes(), path().string()); }

 private:
  MappedFile file_;
};

}  // namespace

bool is_llama2c(const std::filesystem::path& path) {
  return path.extension() == ".bin" && std::filesystem::is_regular_file(path);
}

bool begins_as_llama2c(const std::filesystem::path& path) {
  if (!is_llama2c(path)) return false;
  const MappedFile file(path);
  const auto header = read_llama2c_header(file.bytes());
  return header && in_range((*header)[1]);
}

std::unique_ptr<StoredModel> open_llama2c(const std::filesystem::path& path) {
  return std::make_unique<StoredLlama2c>(path);
}

}  // namespace prism
