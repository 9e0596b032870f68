#include "prism/data/chat/model_template.h"

#include <nlohmann/json.hpp>

#include "prism/core/error.h"

namespace prism {

ChatTemplate chat_template_of(const Tokenizer& tokenizer, const std::string& source) {
  PRISM_CHECK(
      tokenizer.chat_template(), "chat",
      "expected a chat template in {} (chat_template.jinja, tokenizer_config.json, or the metadata of a .gguf); "
      "found none; name one with --chat-template FILE.",
      source);
  Json tokens = Json::object();
  for (const auto& [name, token] : tokenizer.settings().special_tokens) tokens[name] = token;
  return {*tokenizer.chat_template(), tokens, tokenizer.settings().tool_template};
}

}  // namespace prism
