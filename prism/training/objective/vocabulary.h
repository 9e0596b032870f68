// The tokenizer of a recipe's data, and the vocabulary size that the model takes from it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "prism/models/trunk.h"
#include "prism/tokenizer/tokenizer.h"
#include "prism/training/recipe.h"

namespace prism {

/// The tokenizer.json in the recipe's data folder, if any.
/// @param data     folder of the data that it must have made.
/// @param what     what these data are, for messages: "shards", "examples".
/// @param made_by  fingerprint of the tokenizer that made them; empty if unknown.
/// @throws InputError for another tokenizer.
std::optional<Tokenizer> load_data_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& data,
                                             const char* what, const std::string& made_by);

/// Tells a model with word positions where the words of its data start. Does nothing for other models.
/// @param tokenizer  of the data; null: none. @param folder  of the data.
/// @throws InputError if the data have no tokenizer.
void set_word_starts(Trunk& model, const Tokenizer* tokenizer, const std::string& folder);

/// Checks that a model was made with the tokenizer of the data, if both have one.
/// @param field  of the recipe that names the model. @throws InputError naming the field if not.
void check_model_tokenizer(const std::filesystem::path& model, const Tokenizer* tokenizer, const char* field);

/// Copies the embedding of another model. @throws InputError for another tokenizer, or an embedding of another size.
void load_embedding(const std::vector<WeightEntry>& weights, const std::filesystem::path& model,
                    const Tokenizer* tokenizer);

/// The vocabulary size of the recipe's data: labelled examples for classifiers, else token shards; std::nullopt if the
/// folder has none. @throws InputError for data of the other kind, or damaged ones.
std::optional<int64_t> vocab_size_of_data(const Recipe& recipe);

/// Sets a vocabulary size of 0 to that of the data. @throws InputError if the model's is smaller.
void take_vocab_size(ModelConfig& model, int64_t of_data);

}  // namespace prism
