// Reads any bytes as the vocabulary of a GGUF file, and makes a tokenizer of what is accepted.
//
// Each line of the input is a member and its value: "model gpt2", "pre llama-bpe", "bos_token_id 1", "add_bos_token 1".
// "byte_tokens" appends the tokens that the model needs for all bytes. "token TYPE SCORE TEXT" appends one more, and
// "merge A B" a merge. A backslash before n and before itself makes a line feed and a backslash; "no_types" and
// "no_scores" leave the lists out.
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "prism/core/error.h"
#include "prism/tokenizer/byte_alphabet.h"
#include "prism/tokenizer/sources/ggml_vocabulary.h"
#include "prism/tokenizer/text_settings.h"
#include "prism/tokenizer/tokenizer.h"

namespace {

constexpr std::string_view kGgmlText = "the lamp <s> \xE2\x96\x81\xFF\xC3\xA9te\xCC\x81  aaaa</s>ab 123's<|im_end|>";
/// More would make the fuzzer slow, and show nothing new.
constexpr size_t kMostTokens = 4096;

/// The text up to the next `end`, which is removed with it.
std::string_view take(std::string_view& rest, char end) {
  const size_t at = rest.find(end);
  const auto taken = rest.substr(0, at);
  rest.remove_prefix(at == std::string_view::npos ? rest.size() : at + 1);
  return taken;
}

std::string unescaped(std::string_view text) {
  std::string result;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool escape = text[i] == '\\' && i + 1 < text.size();
    if (escape) ++i;
    result += escape && text[i] == 'n' ? '\n' : text[i];
  }
  return result;
}

template <class Number>
Number number_of(std::string_view text) {
  Number number{};
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

void add_token(prism::GgmlVocabulary& vocabulary, std::string text, float score, int32_t type) {
  if (vocabulary.tokens.size() >= kMostTokens) return;
  vocabulary.tokens.push_back(std::move(text));
  vocabulary.scores.push_back(score);
  vocabulary.types.push_back(type);
}

void add_byte_tokens(prism::GgmlVocabulary& vocabulary) {
  const bool by_score = vocabulary.model == "llama";
  const auto type = by_score ? prism::GgmlTokenType::byte : prism::GgmlTokenType::normal;
  for (int byte = 0; byte < 256; ++byte)
    add_token(vocabulary,
              by_score ? fmt::format("<0x{:02X}>", byte) : prism::byte_character(static_cast<uint8_t>(byte)), 0,
              static_cast<int32_t>(type));
}

/// @param value  what follows the member's name.
void set_member(prism::GgmlVocabulary& vocabulary, std::string_view member, std::string_view value) {
  if (member == "model") vocabulary.model = unescaped(value);
  if (member == "pre") vocabulary.pre = unescaped(value);
  if (member == "merge") vocabulary.merges.push_back(unescaped(value));
  if (member == "chat_template") vocabulary.chat_template = unescaped(value);
  if (member == "byte_tokens") add_byte_tokens(vocabulary);
  if (member == "no_types") vocabulary.types.clear();
  if (member == "no_scores") vocabulary.scores.clear();
  if (member == "add_bos_token") vocabulary.add_bos_token = value == "1";
  if (member == "add_eos_token") vocabulary.add_eos_token = value == "1";
  if (member == "add_space_prefix") vocabulary.add_space_prefix = value == "1";
  if (member == "remove_extra_whitespaces") vocabulary.remove_extra_whitespaces = value == "1";
  if (member == "token") {
    const auto type = number_of<int32_t>(take(value, ' '));
    const auto score = number_of<float>(take(value, ' '));
    add_token(vocabulary, unescaped(value), score, type);
  }
  prism::GgmlVocabulary::visit_ids(vocabulary, [&](const char* name, const char*, std::optional<int64_t>& id) {
    if (member == name) id = number_of<int64_t>(value);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  std::string_view rest(reinterpret_cast<const char*>(data), size);
  prism::GgmlVocabulary vocabulary;
  while (!rest.empty()) {
    auto line = take(rest, '\n');
    const auto member = take(line, ' ');
    set_member(vocabulary, member, line);
  }
  try {
    const auto settings = prism::settings_of(vocabulary, "fuzz.gguf");
    const auto tokenizer = prism::Tokenizer::from_ggml(vocabulary, "fuzz.gguf");
    if (tokenizer.settings() != settings) std::abort();
    for (const int32_t end : tokenizer.special_ids().ends) tokenizer.bytes(end);
    for (const auto special : {prism::SpecialTokens::parse, prism::SpecialTokens::as_text})
      tokenizer.decode(tokenizer.encode(kGgmlText, special));
    tokenizer.word_starts();
    tokenizer.fingerprint();
  } catch (const prism::InputError&) {
    // Wrong input is refused with a sentence. Every other exception is a fault.
  }
  return 0;
}
