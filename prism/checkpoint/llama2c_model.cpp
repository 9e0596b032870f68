#include "prism/checkpoint/llama2c_model.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <utility>

#include "prism/checkpoint/gguf_layout.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/core/mapped_file.h"

namespace prism {
namespace {

constexpr size_t kHeaderNumbers = 7;
constexpr int32_t kLargestNumber = 1 << 24;

struct Llama2cHeader {
  ModelConfig config;
  int64_t layers = 0;
};

Llama2cHeader read_llama2c_header(std::span<const std::byte> bytes, const std::string& path) {
  std::array<int32_t, kHeaderNumbers> numbers{};
  PRISM_CHECK(bytes.size() >= sizeof numbers, "llama2c", "{}: expected at least {} bytes; found {}; name a whole file.",
              path, sizeof numbers, bytes.size());
  std::memcpy(numbers.data(), bytes.data(), sizeof numbers);
  auto [d_model, ffn_width, layers, heads, kv_heads, vocab_size, context] = numbers;
  Llama2cHeader header;
  header.config.tied = vocab_size > 0;
  if (vocab_size < 0 && vocab_size >= -kLargestNumber) vocab_size = -vocab_size;
  for (const auto& [name, value] : {std::pair{"width", d_model},
                                    {"feed-forward width", ffn_width},
                                    {"number of layers", layers},
                                    {"number of heads", heads},
                                    {"number of key/value heads", kv_heads},
                                    {"vocabulary", vocab_size},
                                    {"context", context}})
    PRISM_CHECK(value > 0 && value <= kLargestNumber, "llama2c",
                "{}: expected a checkpoint of llama2.c, whose {} is within 1-{}; found {}; name another file.", path,
                name, kLargestNumber, value);
  PRISM_CHECK(layers <= 4096, "llama2c", "{}: expected at most 4096 layers; found {}; name another file.", path,
              layers);
  header.layers = layers;
  header.config.vocab_size = vocab_size;
  header.config.d_model = d_model;
  header.config.context = context;
  header.config.norm_eps = 1e-5;
  header.config.allow_any = true;
  header.config.layers.resize(static_cast<size_t>(layers));
  for (auto& layer : header.config.layers) {
    layer.heads = heads;
    layer.kv_heads = kv_heads;
    layer.ffn.width = ffn_width;
  }
  complete(header.config);
  return header;
}

/// Takes the tensors from the file, one after the other.
class Llama2cWeights {
 public:
  Llama2cWeights(std::span<const std::byte> bytes, std::string path) : bytes_(bytes), path_(std::move(path)) {}

  torch::Tensor take(const std::vector<int64_t>& shape) {
    auto values = torch::empty(shape, torch::kFloat);
    PRISM_CHECK(values.nbytes() <= bytes_.size(), "llama2c",
                "{}: expected a file of the size that its header says; found it cut short; name a whole file.", path_);
    std::memcpy(values.mutable_data_ptr(), bytes_.data(), values.nbytes());
    bytes_ = bytes_.subspan(values.nbytes());
    return values;
  }
  void skip(int64_t count) { take({count}); }
  void expect_end() const {
    PRISM_CHECK(bytes_.empty(), "llama2c",
                "{}: expected a file of the size that its header says; found {} more bytes; name another file.", path_,
                bytes_.size());
  }

 private:
  std::span<const std::byte> bytes_;
  std::string path_;
};

/// A matrix, or norm, that each layer has.
struct LayerTensor {
  const char* name;
  std::vector<int64_t> shape;
};

/// The tensors of the file under the names of model folders.
std::map<std::string, torch::Tensor> take_tensors(const Llama2cHeader& header, Llama2cWeights& weights) {
  const auto& config = header.config;
  const int64_t width = config.d_model;
  int64_t kv_width = 0, ffn_width = 0, head_dim = 0;  // equal in all layers
  for (const auto& layer : config.layers) {
    kv_width = layer.kv_heads * layer.head_dim;
    ffn_width = layer.ffn.width;
    head_dim = layer.head_dim;
  }
  std::map<std::string, torch::Tensor> tensors;
  tensors["model.embed_tokens.weight"] = weights.take({config.vocab_size, width});
  const LayerTensor in_layers[] = {{"input_layernorm", {width}},
                                   {"self_attn.q_proj", {width, width}},
                                   {"self_attn.k_proj", {kv_width, width}},
                                   {"self_attn.v_proj", {kv_width, width}},
                                   {"self_attn.o_proj", {width, width}},
                                   {"post_attention_layernorm", {width}},
                                   {"mlp.gate_proj", {ffn_width, width}},
                                   {"mlp.down_proj", {width, ffn_width}},
                                   {"mlp.up_proj", {ffn_width, width}}};
  const Family& llama = *find_family("llama");
  for (const auto& [part, shape] : in_layers)
    for (int64_t layer = 0; layer < header.layers; ++layer) {
      const auto name = name_from_folder(fmt::format("model.layers.{}.{}.weight", layer, part)).value();
      auto values = weights.take(shape);
      // llama2.c turns neighbouring features, as llama.cpp does.
      const int64_t heads = reordered_heads(name, llama, config);
      tensors[name.folder] = heads > 0 ? rows_from_neighbours(values, heads) : values;
    }
  tensors["model.norm.weight"] = weights.take({width});
  for (int part = 0; part < 2; ++part) weights.skip(config.context * head_dim / 2);
  if (!config.tied) tensors["lm_head.weight"] = weights.take({config.vocab_size, width});
  weights.expect_end();
  return tensors;
}

}  // namespace

bool is_llama2c(const std::filesystem::path& path) {
  return path.extension() == ".bin" && std::filesystem::is_regular_file(path);
}

ModelFolder load_llama2c(const std::filesystem::path& path, torch::ScalarType compute_type) {
  const MappedFile file(path);
  const auto header = read_llama2c_header(file.bytes(), path.string());
  Llama2cWeights weights(file.bytes().subspan(kHeaderNumbers * sizeof(int32_t)), path.string());
  const auto tensors = take_tensors(header, weights);
  file.check_whole();
  const auto tokenizer = std::filesystem::absolute(path).parent_path() / "tokenizer.bin";
  PRISM_CHECK(is_there(tokenizer), "llama2c", "expected the tokenizer of {} in {}; found none; copy it there.",
              path.string(), tokenizer.string());
  ModelFolder model;
  model.folder = path;
  model.decoder = Decoder(header.config);
  const torch::NoGradGuard no_gradients;
  for (auto& [name, values] : file_tensors(model.decoder->weights())) values.copy_(tensors.at(name));
  model.decoder->set_compute_type(compute_type);
  model.tokenizer = Tokenizer::load(tokenizer);
  PRISM_CHECK(
      model.tokenizer->vocab_size() <= header.config.vocab_size, "llama2c",
      "{}: expected a tokenizer of at most {} tokens, the rows of the embedding; found {}; it belongs to another "
      "model; name the right one.",
      tokenizer.string(), header.config.vocab_size, model.tokenizer->vocab_size());
  return model;
}

}  // namespace prism
