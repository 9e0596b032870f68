#include "prism/checkpoint/stored_model.h"

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/gguf/gguf_model.h"
#include "prism/checkpoint/llama2c_model.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"

namespace prism {
namespace {

constexpr const char *kOneFile = "model.safetensors", *kIndexFile = "model.safetensors.index.json";

class StoredFolder : public StoredModel {
 public:
  using StoredModel::StoredModel;

  std::unique_ptr<TensorSource> weights() override {
    auto file = path() / kOneFile;
    if (!is_there(file)) file = path() / kIndexFile;
    PRISM_CHECK(is_there(file), "model",
                "expected a model's weights, {} or {}, in {}; found none; name another folder.", kOneFile, kIndexFile,
                path().string());
    return std::make_unique<SafetensorsSource>(file);
  }
  std::optional<Tokenizer> tokenizer() const override {
    if (!is_there(path() / "tokenizer.json") && !is_there(path() / "tokenizer.model")) return std::nullopt;
    return Tokenizer::load(path());
  }
  void check_recorded(const Tokenizer& tokenizer) const override {
    check_tokenizer(read_json(config_file()), tokenizer, config_file());
  }

 protected:
  ModelConfig read_config() const override { return config_from_json(read_json(config_file()), config_file()); }

 private:
  std::string config_file() const { return (path() / "config.json").string(); }
};

}  // namespace

bool is_model_file(const std::filesystem::path& path) {
  return is_gguf(path) || is_llama2c(path);
}

std::unique_ptr<StoredModel> open_stored(const std::filesystem::path& path) {
  if (is_gguf(path)) return open_gguf(path);
  if (is_llama2c(path)) return open_llama2c(path);
  return std::make_unique<StoredFolder>(path);
}

}  // namespace prism
