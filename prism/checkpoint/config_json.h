// config.json of a model folder.
#pragma once

#include <string>

#include "prism/core/json.h"
#include "prism/models/model_config.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// The config.json of a model: Llama's or Qwen3's where the layers are equal and have nothing else, else `model_type`
/// "prism" with all fields of the ModelConfig in `model`.
/// @param tokenizer  the model's own, whose end-of-text id and fingerprint are written; may be null.
Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer);

/// The config that a config.json describes, complete. @throws InputError naming what is missing or not supported.
ModelConfig config_from_json(const Json& json, const std::string& source);

/// @throws InputError if `json` names the fingerprint of another tokenizer.
void check_tokenizer(const Json& json, const Tokenizer& tokenizer, const std::string& source);

}  // namespace prism
