// The tokenizer of a recipe's data, and the vocabulary size that the model takes from it.
#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "prism/models/model_config.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// The tokenizer.json in the recipe's data folder, if any.
/// @param data     folder of the data that it must have made.
/// @param what     what these data are, for messages: "shards", "examples".
/// @param made_by  fingerprint of the tokenizer that made them; empty if unknown.
/// @throws InputError for another tokenizer.
std::optional<Tokenizer> load_data_tokenizer(const std::filesystem::path& folder, const std::filesystem::path& data,
                                             const char* what, const std::string& made_by);

/// Sets a vocabulary size of 0 to that of the data. @throws InputError if the model's is smaller.
void take_vocab_size(ModelConfig& model, int64_t of_data);

}  // namespace prism
