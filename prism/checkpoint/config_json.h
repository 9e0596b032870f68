// config.json of a model folder.
#pragma once

#include <string>

#include "prism/core/json.h"
#include "prism/models/model_config.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// The config.json of a model. If all layers are equal and use only what Llama or Qwen3 has, it is a Llama or Qwen3
/// config; otherwise `model_type` is "prism" and `model` holds all fields of the ModelConfig.
/// @param tokenizer  the model's tokenizer, whose end-of-text id and fingerprint are written; may be null.
Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer);

/// The complete ModelConfig of a config.json. @throws InputError for missing or unsupported fields.
ModelConfig config_from_json(const Json& json, const std::string& source);

/// @throws InputError if `json` names the fingerprint of another tokenizer.
void check_tokenizer(const Json& json, const Tokenizer& tokenizer, const std::string& source);

}  // namespace prism
