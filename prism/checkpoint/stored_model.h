// A model as it is stored, opened once: a model folder, a GGUF file, or a checkpoint of llama2.c.
//
//   const auto stored = open_stored(find_model_folder("runs/novels"));
//   Decoder decoder(stored->config());
//   read_tensors(*stored->weights(), file_tensors(decoder->weights()));
//
// To add a format, derive a class from StoredModel and add a row in stored_model.cpp.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <utility>

#include "prism/checkpoint/tensor_file.h"
#include "prism/models/model_config.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// Each part is read when it is asked for. All of them throw InputError for what is missing or damaged.
class StoredModel {
 public:
  explicit StoredModel(std::filesystem::path path) : path_(std::move(path)) {}
  virtual ~StoredModel() = default;
  StoredModel(const StoredModel&) = delete;
  StoredModel& operator=(const StoredModel&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// The complete config, which is read once.
  const ModelConfig& config() {
    if (!config_) config_ = read_config();
    return *config_;
  }
  /// The tensors under the names of model folders. They may be used after the StoredModel.
  virtual std::unique_ptr<TensorSource> weights() = 0;
  /// std::nullopt if there is none.
  virtual std::optional<Tokenizer> tokenizer() const = 0;
  /// @throws InputError if the model records that it was trained with another tokenizer.
  virtual void check_recorded(const Tokenizer&) const {}

 protected:
  virtual ModelConfig read_config() const = 0;

 private:
  std::filesystem::path path_;
  std::optional<ModelConfig> config_;
};

/// Returns true for an existing file that is a whole model by its name: it ends in .gguf or .bin.
bool is_model_file(const std::filesystem::path& path);

/// Opens a model file, or else a model folder, of which only the parts that are asked for must be there.
std::unique_ptr<StoredModel> open_stored(const std::filesystem::path& path);

}  // namespace prism
