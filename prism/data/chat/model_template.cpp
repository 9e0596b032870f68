#include "prism/data/chat/model_template.h"

#include <nlohmann/json.hpp>

#include "prism/core/error.h"
#include "prism/core/files.h"

namespace prism {

ChatTemplate chat_template_of(const Tokenizer& tokenizer, const std::filesystem::path& file,
                              const std::string& source) {
  const auto text = file.empty() ? tokenizer.chat_template() : std::optional(read_file(file));
  PRISM_CHECK(
      text, "chat",
      "expected a chat template in {} (chat_template.jinja, tokenizer_config.json, or the metadata of a .gguf); "
      "found none; name one with --chat-template FILE.",
      source);
  Json tokens = Json::object();
  for (const auto& [name, token] : tokenizer.settings().special_tokens) tokens[name] = token;
  return {*text, tokens};
}

}  // namespace prism
