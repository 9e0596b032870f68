#include "prism/checkpoint/model_folder.h"

#include <algorithm>
#include <set>

#include "prism/checkpoint/config_json.h"
#include "prism/checkpoint/huggingface_files.h"
#include "prism/checkpoint/llama2c_model.h"
#include "prism/checkpoint/run_state.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/core/error.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"

namespace prism {
namespace {

constexpr const char* kWeightsName = "model.safetensors";
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

/// Copies a model's tensors into `weights`.
/// @param read  names of tensors that have been read already.
void read_weights(const std::vector<WeightEntry>& weights, const TensorSource& source,
                  const std::vector<std::string>& read = {}) {
  const auto targets = file_tensors(weights);
  std::set<std::string> known(read.begin(), read.end());
  for (const auto& target : targets) known.insert(target.name);
  // Other programs also save what they compute or tie: the angles of the rotary encoding, and a head that is tied.
  const bool has_head = known.contains(kHeadName);
  read_tensors(source, targets, [&](const std::string& name) {
    return known.contains(name) || name.ends_with("rotary_emb.inv_freq") || (!has_head && name == kHeadName);
  });
}

/// A model of the kind `Module` with its weights; fills the other parts of `folder`.
template <class Module, class Folder>
Module read_module(StoredModel& stored, const LoadOptions& options, Folder& folder) {
  const auto source = stored.weights();  // which checks the sizes, before the model takes memory
  auto config = stored.config();
  set_context(config, options.context);
  Module model(config);
  model->set_compute_type(options.compute_type);
  const auto frozen = read_frozen(*model, *source, options.weights);
  read_weights(frozen.left, *source, frozen.read);
  folder.folder = stored.path();
  folder.converted = frozen.converted;
  auto& tokenizer = folder.tokenizer;
  tokenizer = stored.tokenizer();
  if (!tokenizer) return model;
  check_size(*tokenizer, model->config(), stored.path());
  stored.check_recorded(*tokenizer);
  if (has_word_positions(model->config())) model->set_word_starts(tokenizer->word_starts());
  return model;
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
  if (is_there(path / "config.json") || is_model_file(path)) return path;
  if (const auto last = last_checkpoint(path)) return *last;
  throw InputError(
      "model", fmt::format("expected a model folder (with config.json), a .gguf file, llama2.c's .bin, or a run with a "
                           "checkpoint at {}; found {}; name another.",
                           path.string(), fs::exists(path) ? "none of them" : "nothing"));
}

ModelConfig load_config(const fs::path& path) {
  return open_stored(find_model_folder(path))->config();
}

std::optional<Tokenizer> load_tokenizer(const fs::path& path) {
  return open_stored(path)->tokenizer();
}

Tokenizer open_tokenizer(const fs::path& path) {
  if (!is_model_file(path) || (is_llama2c(path) && !begins_as_llama2c(path))) return Tokenizer::load(path);
  auto tokenizer = load_tokenizer(path);
  PRISM_CHECK(tokenizer, "tokenizer", "expected a tokenizer in {}; found none; name another file.", path.string());
  return std::move(*tokenizer);
}

std::unique_ptr<TensorSource> open_weights(const fs::path& folder) {
  return open_stored(folder)->weights();
}

void load_weights(const std::vector<WeightEntry>& weights, const fs::path& folder) {
  read_weights(weights, *open_weights(folder));
}

void save_weights(const fs::path& folder, const std::vector<WeightEntry>& weights) {
  write_tensors(folder / kWeightsName, file_tensors(weights));
}

ModelFolder load_model(StoredModel& stored, const LoadOptions& options) {
  PRISM_CHECK(stored.config().classes == 0, "model",
              "expected a language model in {}; found a classifier; name another model.", stored.path().string());
  ModelFolder model;
  model.decoder = read_module<Decoder>(stored, options, model);
  return model;
}

ModelFolder load_model(const fs::path& path, const LoadOptions& options) {
  return load_model(*open_stored(find_model_folder(path)), options);
}

ClassifierFolder load_classifier(StoredModel& stored, const LoadOptions& options) {
  const int64_t classes = stored.config().classes;
  PRISM_CHECK(classes > 0, "model", "expected a classifier in {}; found a language model; name another model.",
              stored.path().string());
  ClassifierFolder model;
  model.classifier = read_module<Classifier>(stored, options, model);
  model.scheme = load_scheme(model.folder, classes);
  return model;
}

ClassifierFolder load_classifier(const fs::path& path, const LoadOptions& options) {
  return load_classifier(*open_stored(find_model_folder(path)), options);
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
