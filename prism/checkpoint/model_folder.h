// Model folders in the Hugging Face layout: config.json, model.safetensors, tokenizer.json, tokenizer_config.json,
// generation_config.json, chat_template.jinja. Every command that takes a model takes such a folder, a GGUF file, or a
// checkpoint of llama2.c.
//
//   save_model("out", *decoder, &tokenizer);
//   ModelFolder model = load_model("runs/novels");        // a model folder, or a run (its last checkpoint)
//   auto hidden = model.decoder(tokens, ForwardContext{});
#pragma once

#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "prism/checkpoint/frozen_weights.h"
#include "prism/checkpoint/stored_model.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/data/labelled/dataset.h"
#include "prism/models/classifier.h"
#include "prism/models/decoder.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// How a model is kept in memory.
struct LoadOptions {
  /// float32 weights.
  // NOLINTNEXTLINE(google-explicit-constructor): most callers have only a dtype.
  LoadOptions(torch::ScalarType type) : compute_type(type) {}
  LoadOptions(torch::ScalarType type, WeightStorage storage, ContextOptions given = {})
      : compute_type(type), weights(storage), context(std::move(given)) {}

  torch::ScalarType compute_type = torch::kFloat;  ///< dtype of matmuls
  WeightStorage weights = WeightStorage::float32;
  ContextOptions context = {};
};

/// A language model and its tokenizer.
struct ModelFolder {
  std::filesystem::path folder;  ///< the model folder that was read
  Decoder decoder{nullptr};
  std::optional<Tokenizer> tokenizer;             ///< std::nullopt if the folder has none
  std::map<std::string, int64_t> converted = {};  ///< as FrozenWeights::converted
};

/// The same for a classifier, with classes.json: the names of its classes and how its texts are read.
struct ClassifierFolder {
  std::filesystem::path folder;
  Classifier classifier{nullptr};
  std::optional<Tokenizer> tokenizer;
  std::map<std::string, int64_t> converted = {};
  LabelScheme scheme;  ///< the names are numbers from 0 if the folder has no classes.json
};

/// The model folder at a path: the path itself, or the last checkpoint if it is a run. The path of a model file
/// (is_model_file()) stands for a folder. @throws InputError if it is none of them.
std::filesystem::path find_model_folder(const std::filesystem::path& path);

/// The config of a model folder or run, without its weights.
ModelConfig load_config(const std::filesystem::path& path);

/// Reads a language model.
/// @throws InputError for a classifier, missing or truncated files, tensors of the wrong shape, a tokenizer larger than
///         the embedding, or the tokenizer of another model.
ModelFolder load_model(StoredModel& stored, const LoadOptions& options);
ModelFolder load_model(const std::filesystem::path& path, const LoadOptions& options);
/// Reads a classifier. @throws InputError for a language model, or a classes.json of another number of classes; else as
/// load_model().
ClassifierFolder load_classifier(StoredModel& stored, const LoadOptions& options);
ClassifierFolder load_classifier(const std::filesystem::path& path, const LoadOptions& options);

/// The tokenizer of a model folder or file; std::nullopt if it has none. @throws InputError naming what is wrong with
/// it.
std::optional<Tokenizer> load_tokenizer(const std::filesystem::path& path);
/// The tokenizer that a user names: a file or folder as Tokenizer::load() takes it, or a model file.
/// @throws InputError if there is none, or something is wrong with it.
Tokenizer open_tokenizer(const std::filesystem::path& path);

/// The weights of a model file, or those of a folder: model.safetensors or the files that model.safetensors.index.json
/// lists. @throws InputError if there are none, or they are damaged.
std::unique_ptr<TensorSource> open_weights(const std::filesystem::path& folder);

/// Copies the tensors of a model folder into `weights`, which convert them to their dtype. @throws InputError if a
/// tensor is missing or has the wrong shape.
void load_weights(const std::vector<WeightEntry>& weights, const std::filesystem::path& folder);

/// Writes model.safetensors into the existing `folder`. Each weight keeps its dtype.
void save_weights(const std::filesystem::path& folder, const std::vector<WeightEntry>& weights);

/// Writes all files of a model folder into the existing `folder`. Each weight keeps its dtype.
/// @param model      a model of any kind, with its head.
/// @param tokenizer  may be null.
void save_model(const std::filesystem::path& folder, const Trunk& model, const Tokenizer* tokenizer);
/// The same for a classifier, with classes.json.
void save_classifier(const std::filesystem::path& folder, const Classifier& classifier, const Tokenizer* tokenizer,
                     const LabelScheme& scheme);

}  // namespace prism
