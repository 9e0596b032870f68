// Vocabularies as GGUF files have them.
#pragma once

#include <string>
#include <vector>

#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {

/// The vocabulary of a fixture as a GGUF file has it.
inline GgmlVocabulary ggml_fixture(const std::string& name, const std::string& pre) {
  const nlohmann::json file = fixture_json(name);
  GgmlVocabulary vocabulary{.model = "gpt2", .pre = pre};
  std::vector<std::string> tokens(file["model"]["vocab"].size());  // the added token is among them
  for (const auto& [token, id] : file["model"]["vocab"].items()) tokens[id.get<size_t>()] = token;
  vocabulary.types.assign(tokens.size(), static_cast<int32_t>(GgmlTokenType::normal));
  for (const auto& token : file["added_tokens"]) {
    const auto id = token["id"].get<size_t>();
    tokens[id] = token["content"];
    const auto type = token["special"].get<bool>() ? GgmlTokenType::control : GgmlTokenType::user_defined;
    vocabulary.types[id] = static_cast<int32_t>(type);
  }
  vocabulary.tokens = tokens;
  for (const auto& merge : file["model"]["merges"])
    vocabulary.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  return vocabulary;
}

/// A vocabulary merged by score: <unk>, <s>, </s>, the bytes, a few pieces.
inline GgmlVocabulary scored_vocabulary() {
  GgmlVocabulary vocabulary{.model = "llama"};
  const auto add = [&](const std::string& token, float score, GgmlTokenType type) {
    vocabulary.tokens.push_back(token);
    vocabulary.scores.push_back(score);
    vocabulary.types.push_back(static_cast<int32_t>(type));
  };
  add("<unk>", 0, GgmlTokenType::unknown);
  add("<s>", 0, GgmlTokenType::control);
  add("</s>", 0, GgmlTokenType::control);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0, GgmlTokenType::byte);
  add("▁", -3, GgmlTokenType::normal);
  add("a", -4, GgmlTokenType::normal);
  add("▁a", -1, GgmlTokenType::normal);
  add("<im>", 0, GgmlTokenType::user_defined);
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  return vocabulary;
}

}  // namespace prism
