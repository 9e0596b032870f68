// config.json of a model folder.
#pragma once

#include <string>

#include "prism/core/json.h"
#include "prism/models/model_config.h"
#include "prism/tokenizer/tokenizer.h"

namespace prism {

/// bos_token_id and eos_token_id, as config.json and generation_config.json have them: null, a number, or several.
Json special_id_members(const Tokenizer& tokenizer);

/// The config.json of a model. If one of the families of transformers can express the model, it is a config of that
/// family; otherwise `model_type` is "prism" and `model` holds all fields of the ModelConfig.
/// @param tokenizer  the model's tokenizer, whose special ids and fingerprint are written; may be null.
/// @param dtype      of the weights, in torch's name.
Json config_to_json(const ModelConfig& config, const Tokenizer* tokenizer, const std::string& dtype = "float32");

/// The complete ModelConfig of a config.json. @throws InputError for missing or unsupported fields.
ModelConfig config_from_json(const Json& json, const std::string& source);

/// @throws InputError if `json` names the fingerprint of another tokenizer.
void check_tokenizer(const Json& json, const Tokenizer& tokenizer, const std::string& source);

}  // namespace prism
