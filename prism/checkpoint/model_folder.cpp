#include "prism/checkpoint/model_folder.h"

#include <algorithm>

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/gguf_model.h"
#include "prism/checkpoint/gguf_vocabulary.h"
#include "prism/checkpoint/huggingface_files.h"
#include "prism/checkpoint/run_state.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"

namespace prism {
namespace {

constexpr const char *kWeightsName = "model.safetensors", *kIndexName = "model.safetensors.index.json";
constexpr const char *kClassesName = "classes.json", *kHeadName = "lm_head.weight";

namespace fs = std::filesystem;

std::string pretty(const Json& json) {
  return to_text(json, 2) + "\n";
}

/// "float32", "bfloat16", ...
std::string dtype_name(const torch::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case torch::kBFloat16:
      return "bfloat16";
    case torch::kHalf:
      return "float16";
    case torch::kDouble:
      return "float64";
    default:
      return "float32";
  }
}

Json generation_config(const Tokenizer* tokenizer) {
  Json json = {{"_from_model_config", true}, {"do_sample", false}};
  if (tokenizer != nullptr) json.update(special_id_members(*tokenizer));
  return json;
}

void check_size(const Tokenizer& tokenizer, const ModelConfig& config, const fs::path& path) {
  PRISM_CHECK(tokenizer.vocab_size() <= config.vocab_size, "model",
              "{}: expected a tokenizer of at most {} tokens, the rows of the embedding; found {}; it belongs to "
              "another model; restore the right one.",
              path.string(), config.vocab_size, tokenizer.vocab_size());
}

/// Reads a model's weights and its tokenizer, if any.
std::optional<Tokenizer> fill_model(Trunk& model, const fs::path& path, torch::ScalarType compute_type) {
  load_weights(model.weights(), path);
  model.set_compute_type(compute_type);
  auto tokenizer = load_tokenizer(path);
  if (!tokenizer) return tokenizer;
  check_size(*tokenizer, model.config(), path);
  if (!is_gguf(path)) {
    const auto config_file = (path / "config.json").string();
    check_tokenizer(read_json(config_file), *tokenizer, config_file);
  }
  if (has_word_positions(model.config())) model.set_word_starts(tokenizer->word_starts());
  return tokenizer;
}

LabelScheme load_scheme(const fs::path& folder, int64_t classes) {
  const fs::path file = folder / kClassesName;
  LabelScheme scheme;
  if (!is_there(file)) {
    for (int64_t i = 0; i < classes; ++i) scheme.classes.push_back(std::to_string(i));
    return scheme;
  }
  scheme = fields_from_json<LabelScheme>(read_json(file.string()), file.string());
  check(scheme, file);
  PRISM_CHECK(static_cast<int64_t>(scheme.classes.size()) == classes, "model",
              "{}: expected the names of the model's {} classes; found {}; restore the file of this model.",
              file.string(), classes, scheme.classes.size());
  return scheme;
}

}  // namespace

fs::path find_model_folder(const fs::path& path) {
  PRISM_CHECK(!path.empty(), "model", "expected the name of a model folder or a run; found an empty one; name one.");
  if (is_there(path / "config.json") || is_gguf(path)) return path;
  if (const auto last = last_checkpoint(path)) return *last;
  throw InputError(
      "model",
      fmt::format(
          "expected a model folder (with config.json) or a run with a checkpoint at {}; found {}; name another.",
          path.string(), fs::exists(path) ? "neither" : "nothing"));
}

ModelConfig load_config(const fs::path& path) {
  if (is_gguf(path)) return config_from_gguf(GgufReader(path));
  const auto file = find_model_folder(path) / "config.json";
  return config_from_json(read_json(file.string()), file.string());
}

std::optional<Tokenizer> load_tokenizer(const fs::path& path) {
  if (is_gguf(path)) {
    const auto vocabulary = vocabulary_from_gguf(GgufReader(path));
    return vocabulary ? std::optional(Tokenizer::from_ggml(*vocabulary, path.string())) : std::nullopt;
  }
  if (!is_there(path / "tokenizer.json") && !is_there(path / "tokenizer.model")) return std::nullopt;
  return Tokenizer::load(path);
}

Tokenizer open_tokenizer(const fs::path& path) {
  if (!is_gguf(path)) return Tokenizer::load(path);
  auto tokenizer = load_tokenizer(path);
  PRISM_CHECK(tokenizer, "tokenizer", "expected a tokenizer in {}; found none; name another file.", path.string());
  return std::move(*tokenizer);
}

std::unique_ptr<TensorSource> open_weights(const fs::path& folder) {
  if (is_gguf(folder)) return std::make_unique<GgufSource>(folder);
  fs::path file = folder / kWeightsName;
  if (!is_there(file)) file = folder / kIndexName;
  PRISM_CHECK(is_there(file), "model", "expected a model's weights, {} or {}, in {}; found none; name another folder.",
              kWeightsName, kIndexName, folder.string());
  return std::make_unique<SafetensorsSource>(file);
}

void load_weights(const std::vector<WeightEntry>& weights, const fs::path& folder) {
  const auto targets = file_tensors(weights);
  const bool has_head =
      std::any_of(targets.begin(), targets.end(), [](const NamedTensor& target) { return target.name == kHeadName; });
  // Other programs also save what they compute or tie: the angles of the rotary encoding, and a head that is tied.
  read_tensors(*open_weights(folder), targets, [&](const std::string& name) {
    return name.ends_with("rotary_emb.inv_freq") || (!has_head && name == kHeadName);
  });
}

void save_weights(const fs::path& folder, const std::vector<WeightEntry>& weights) {
  write_tensors(folder / kWeightsName, file_tensors(weights));
}

ModelFolder load_model(const fs::path& path, torch::ScalarType compute_type) {
  ModelFolder model;
  model.folder = find_model_folder(path);
  const auto config = load_config(model.folder);
  PRISM_CHECK(config.classes == 0, "model", "expected a language model in {}; found a classifier; name another model.",
              model.folder.string());
  model.decoder = Decoder(config);
  model.tokenizer = fill_model(*model.decoder, model.folder, compute_type);
  return model;
}

ClassifierFolder load_classifier(const fs::path& path, torch::ScalarType compute_type) {
  ClassifierFolder model;
  model.folder = find_model_folder(path);
  const auto config = load_config(model.folder);
  PRISM_CHECK(config.classes > 0, "model", "expected a classifier in {}; found a language model; name another model.",
              model.folder.string());
  model.classifier = Classifier(config);
  model.tokenizer = fill_model(*model.classifier, model.folder, compute_type);
  model.scheme = load_scheme(model.folder, config.classes);
  return model;
}

void save_model(const fs::path& folder, const Trunk& model, const Tokenizer* tokenizer) {
  const auto weights = model.weights();
  save_weights(folder, weights);
  const Json config = config_to_json(model.config(), tokenizer, dtype_name(weights.front().weight.tensor()));
  write_file(folder / "config.json", pretty(config));
  if (config["model_type"] == "prism") {
    write_file(folder / "configuration_prism.py", kConfigurationFile);
    write_file(folder / "modeling_prism.py", kModelingFile);
  }
  if (model.config().classes == 0) write_file(folder / "generation_config.json", pretty(generation_config(tokenizer)));
  if (tokenizer == nullptr) return;
  tokenizer->save(folder / "tokenizer.json");
  write_settings(folder, *tokenizer, model.config().context);
}

void save_classifier(const fs::path& folder, const Classifier& classifier, const Tokenizer* tokenizer,
                     const LabelScheme& scheme) {
  save_model(folder, *classifier, tokenizer);
  write_file(folder / kClassesName, pretty(fields_to_json(scheme)));
}

}  // namespace prism
