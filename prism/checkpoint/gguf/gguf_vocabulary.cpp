#include "prism/checkpoint/gguf/gguf_vocabulary.h"

#include <array>
#include <string>
#include <utility>

namespace prism {
namespace {

constexpr const char *kVocabularyStart = "tokenizer.ggml.", *kTemplateKey = "tokenizer.chat_template";

/// The flags of a vocabulary, with their keys.
template <class Vocabulary>
auto flags_of(Vocabulary& vocabulary) {
  return std::array{std::pair{"add_bos_token", &vocabulary.add_bos_token},
                    std::pair{"add_eos_token", &vocabulary.add_eos_token},
                    std::pair{"add_space_prefix", &vocabulary.add_space_prefix},
                    std::pair{"remove_extra_whitespaces", &vocabulary.remove_extra_whitespaces}};
}

}  // namespace

std::optional<GgmlVocabulary> vocabulary_from_gguf(const GgufReader& reader) {
  const auto& metadata = reader.metadata();
  const std::string start = kVocabularyStart;
  if (!metadata.contains(start + "tokens")) return std::nullopt;
  GgmlVocabulary found;
  found.model = metadata.text(start + "model");
  found.pre = metadata.find_text(start + "pre").value_or("");
  found.tokens = metadata.texts(start + "tokens");
  for (const double score : metadata.find_reals(start + "scores").value_or(std::vector<double>()))
    found.scores.push_back(static_cast<float>(score));
  for (const int64_t type : metadata.find_integers(start + "token_type").value_or(std::vector<int64_t>()))
    found.types.push_back(static_cast<int32_t>(type));
  if (const auto* merges = metadata.find_texts(start + "merges")) found.merges = *merges;
  GgmlVocabulary::visit_ids(found, [&](const char* key, const char*, std::optional<int64_t>& id) {
    id = metadata.find_integer(start + key);
  });
  for (const auto& [key, flag] : flags_of(found)) *flag = metadata.find_flag(start + key);
  found.chat_template = metadata.find_text(kTemplateKey);
  return found;
}

void put_vocabulary(const GgmlVocabulary& vocabulary, GgufPairs& pairs) {
  const std::string start = kVocabularyStart;
  pairs.emplace_back(start + "model", vocabulary.model);
  pairs.emplace_back(start + "pre", vocabulary.pre.empty() ? "default" : vocabulary.pre);
  pairs.emplace_back(start + "tokens", GgufArray(vocabulary.tokens));
  if (!vocabulary.scores.empty()) pairs.emplace_back(start + "scores", GgufArray(vocabulary.scores));
  if (!vocabulary.types.empty()) pairs.emplace_back(start + "token_type", GgufArray(vocabulary.types));
  // llama.cpp refuses a vocabulary of this model without the key.
  if (vocabulary.model == "gpt2") pairs.emplace_back(start + "merges", GgufArray(vocabulary.merges));
  GgmlVocabulary::visit_ids(vocabulary, [&](const char* key, const char*, const std::optional<int64_t>& id) {
    if (id) pairs.emplace_back(start + key, static_cast<uint32_t>(*id));
  });
  for (const auto& [key, flag] : flags_of(vocabulary))
    if (*flag) pairs.emplace_back(start + key, **flag);
  if (vocabulary.chat_template) pairs.emplace_back(kTemplateKey, *vocabulary.chat_template);
}

void put_no_vocabulary(GgufPairs& pairs) {
  pairs.emplace_back(std::string(kVocabularyStart) + "model", std::string("no_vocab"));
}

}  // namespace prism
