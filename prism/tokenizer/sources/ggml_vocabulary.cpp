#include "prism/tokenizer/sources/ggml_vocabulary.h"

#include <string_view>
#include <unordered_map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/sources/scored_pieces.h"

namespace prism {
namespace {

constexpr size_t kShownToken = 60;

GgmlTokenType type_of(const GgmlVocabulary& vocabulary, size_t id) {
  return vocabulary.types.empty() ? GgmlTokenType::normal : static_cast<GgmlTokenType>(vocabulary.types[id]);
}

void check_arrays(const GgmlVocabulary& vocabulary, const std::string& source) {
  const size_t count = vocabulary.tokens.size();
  PRISM_CHECK(count > 0 && count <= static_cast<size_t>(kMaxTokens), "tokenizer",
              "{}: expected from 1 to {} tokens in tokenizer.ggml.tokens; found {}; choose another file.", source,
              kMaxTokens, count);
  const auto check_length = [&](const char* name, size_t length) {
    PRISM_CHECK(length == 0 || length == count, "tokenizer",
                "{}: expected tokenizer.ggml.{} to have an element for each of the {} tokens; found {}; "
                "the file is damaged; restore it.",
                source, name, count, length);
  };
  check_length("scores", vocabulary.scores.size());
  check_length("token_type", vocabulary.types.size());
  check_special_ids(vocabulary, source);
}

ScoredPiece::Kind piece_kind(GgmlTokenType type, const std::string& text) {
  switch (type) {
    case GgmlTokenType::unknown:
      return ScoredPiece::Kind::unknown;
    case GgmlTokenType::control:
      return ScoredPiece::Kind::control;
    case GgmlTokenType::user_defined:
      return ScoredPiece::Kind::user_defined;
    case GgmlTokenType::byte:
      return ScoredPiece::Kind::byte;
    default:
      return fallback_byte(text) ? ScoredPiece::Kind::byte : ScoredPiece::Kind::normal;
  }
}

TokenizerFile scored_file(const GgmlVocabulary& vocabulary, const std::string& source) {
  PRISM_CHECK(
      !vocabulary.scores.empty(), "tokenizer",
      "{}: expected tokenizer.ggml.scores for the model \"llama\"; found none; the file is damaged; restore it.",
      source);
  std::vector<ScoredPiece> pieces;
  pieces.reserve(vocabulary.tokens.size());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id];
    pieces.push_back({text, vocabulary.scores[id], piece_kind(type_of(vocabulary, id), text)});
  }
  return file_of_pieces(pieces,
                        {.add_prefix = vocabulary.add_space_prefix.value_or(true),
                         .remove_extra_spaces = vocabulary.remove_extra_whitespaces.value_or(false)},
                        source);
}

void add_tokens(const GgmlVocabulary& vocabulary, const std::string& source, TokenizerFile& file) {
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const std::string& text = vocabulary.tokens[id];
    if (text.empty()) continue;  // an id without a token
    PRISM_CHECK(find_invalid_utf8(text) == std::string::npos, "tokenizer",
                "{}: expected tokens in UTF-8; found that token {} is not; the file is damaged; restore it.", source,
                id);
    file.vocab.push_back({static_cast<int32_t>(id), text});
    const GgmlTokenType type = type_of(vocabulary, id);
    if (type != GgmlTokenType::control && type != GgmlTokenType::user_defined && type != GgmlTokenType::unknown)
      continue;
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = text;
    token.special = type != GgmlTokenType::user_defined;
    file.added.push_back(std::move(token));
  }
}

void add_merges(const GgmlVocabulary& vocabulary, const std::string& source, TokenizerFile& file) {
  std::unordered_map<std::string_view, int32_t> ids;
  ids.reserve(file.vocab.size());
  for (const auto& entry : file.vocab) {
    const auto [other, added] = ids.emplace(entry.spelling, entry.id);
    PRISM_CHECK(added, "tokenizer",
                "{}: expected every token once; found \"{}\" at {} and {}; the file is damaged; restore it.", source,
                short_line(entry.spelling, kShownToken), other->second, entry.id);
  }
  for (const std::string& merge : vocabulary.merges) {
    // A part may begin with a space: the cut is at the first one after that.
    const size_t space = merge.find(' ', 1);
    const std::string left = merge.substr(0, space), right = space == std::string::npos ? "" : merge.substr(space + 1);
    const auto left_id = ids.find(left), right_id = ids.find(right), result = ids.find(left + right);
    PRISM_CHECK(space != std::string::npos && left_id != ids.end() && right_id != ids.end() && result != ids.end(),
                "tokenizer",
                "{}: expected merge {} of tokenizer.ggml.merges to join two tokens into one; found \"{}\"; "
                "the file is damaged; restore it.",
                source, file.merges.size(), short_line(merge, kShownToken));
    file.merges.push_back({left_id->second, right_id->second, result->second});
  }
}

TokenizerFile byte_level_file(const GgmlVocabulary& vocabulary, const std::string& source) {
  const GgmlPretokenizer& pretokenizer = find_ggml_pretokenizer(vocabulary.pre, source);
  TokenizerFile file;
  add_tokens(vocabulary, source, file);
  add_merges(vocabulary, source, file);
  file.pre_tokenizer = pretokenizer_json(pretokenizer);
  file.ignore_merges = pretokenizer.ignores_merges;
  file.rest["decoder"] = {
      {"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}};
  file.model_rest = {{"dropout", nullptr}, {"unk_token", nullptr},   {"continuing_subword_prefix", nullptr},
                     {"fuse_unk", false},  {"byte_fallback", false}, {"end_of_word_suffix", nullptr}};
  return file;
}

}  // namespace

TokenizerFile tokenizer_file_of(const GgmlVocabulary& vocabulary, const std::string& source) {
  check_arrays(vocabulary, source);
  if (vocabulary.model == "llama") return scored_file(vocabulary, source);
  PRISM_CHECK(
      vocabulary.model == "gpt2", "tokenizer",
      "{}: expected tokenizer.ggml.model to be \"gpt2\" or \"llama\"; found \"{}\"; other kinds are not supported, "
      "choose another file.",
      source, short_line(vocabulary.model, kShownToken));
  PRISM_CHECK(
      !vocabulary.add_space_prefix.value_or(false), "tokenizer",
      "{}: expected tokenizer.ggml.add_space_prefix only for the model \"llama\"; found it for \"gpt2\"; choose "
      "another file.",
      source);
  return byte_level_file(vocabulary, source);
}

void check_special_ids(const GgmlVocabulary& vocabulary, const std::string& source) {
  const auto count = std::ssize(vocabulary.tokens);
  GgmlVocabulary::visit_ids(vocabulary, [&](const char* name, const char*, const std::optional<int64_t>& id) {
    PRISM_CHECK(!id || (*id >= 0 && *id < count), "tokenizer",
                "{}: expected tokenizer.ggml.{} to be an id from 0 to {}; found {}; the file is damaged; restore it.",
                source, name, count - 1, *id);
  });
}

}  // namespace prism
