#include "prism/training/objective/vocabulary.h"

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/core/error.h"
#include "prism/core/files.h"
#include "prism/data/labelled/dataset.h"
#include "prism/data/loader.h"

namespace prism {

std::optional<Tokenizer> load_data_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& data,
                                             const char* what, const std::string& made_by) {
  if (!is_there(folder / kTokenizerName)) return std::nullopt;
  auto tokenizer = Tokenizer::load(folder);
  PRISM_CHECK(made_by.empty() || made_by == tokenizer.fingerprint_text(), "train",
              "expected the tokenizer that made the {} of {} ({}); found another tokenizer.json ({}) in {}; restore "
              "it, or run prism tokenize again.",
              what, data.string(), made_by, tokenizer.fingerprint_text(), folder.string());
  return tokenizer;
}

void set_word_starts(Trunk& model, const Tokenizer* tokenizer, const std::string& folder) {
  if (!has_word_positions(model.config())) return;
  PRISM_CHECK(tokenizer != nullptr, "train",
              "expected a tokenizer in {}, from which positions in words are found (rotary.word_dims); found none; add "
              "tokenizer.json, or leave word_dims out.",
              folder);
  model.set_word_starts(tokenizer->word_starts());
}

void check_model_tokenizer(const std::filesystem::path& model, const Tokenizer* tokenizer, const char* field) {
  const auto found = tokenizer == nullptr ? std::nullopt : load_tokenizer(model);
  if (!found) return;
  const auto theirs = found->fingerprint_text(), ours = tokenizer->fingerprint_text();
  PRISM_CHECK(
      theirs == ours, "train",
      "{}: expected a model with the tokenizer of the data, {}; found {} in {}; tokenize the text with that one.",
      field, ours, theirs, model.string());
}

void load_embedding(const std::vector<WeightEntry>& weights, const std::filesystem::path& model,
                    const Tokenizer* tokenizer) {
  check_model_tokenizer(model, tokenizer, "init_embedding");
  const auto& embedding = weights.front();
  PRISM_ASSERT(embedding.traits.role == WeightRole::table, "train", "{} is the first weight", embedding.name);
  const auto theirs = open_weights(model)->read(embedding.tensors.front().name);
  PRISM_CHECK(
      theirs.sizes() == embedding.weight.shape(), "train",
      "init_embedding: expected an embedding of {} tokens and {} features; found {} in {}; change the recipe, or "
      "name another model.",
      embedding.weight.shape()[0], embedding.weight.shape()[1], c10::str(theirs.sizes()), model.string());
  const torch::NoGradGuard no_gradients;
  embedding.weight.tensor().copy_(theirs);
}

std::optional<int64_t> vocab_size_of_data(const Recipe& recipe) {
  const std::filesystem::path folder = recipe.data.folder;
  if (!is_there(folder / kDatasetInfoName)) return std::nullopt;
  if (unit_of(recipe) == TrainingUnit::examples) return read_labelled_info(folder).vocab_size;
  return read_dataset_info(folder)->vocab_size;
}

void take_vocab_size(ModelConfig& model, int64_t of_data) {
  if (model.vocab_size == 0) model.vocab_size = of_data;
  PRISM_CHECK(model.vocab_size >= of_data, "train",
              "expected model.vocab_size of at least {}, the size of the data's tokenizer; found {}; leave it out.",
              of_data, model.vocab_size);
}

}  // namespace prism
