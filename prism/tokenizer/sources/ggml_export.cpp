#include "prism/tokenizer/sources/ggml_export.h"

#include <algorithm>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/tokenizer/normalize/normalizer.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/split/metaspace.h"
#include "prism/tokenizer/split/pretokenizer.h"

namespace prism {
namespace {

constexpr size_t kShownPart = 80;
constexpr const char* kExportSource = "tokenizer";
/// Below all scores of tokens that merging makes, of which there are at most kMaxTokens.
constexpr float kLowestScore = -static_cast<float>(kMaxTokens);

[[noreturn]] void refuse_export(const std::string& found) {
  throw InputError("gguf", fmt::format("expected a tokenizer that GGUF can express; found {}; write a model folder "
                                       "instead, with a name that does not end in .gguf.",
                                       found));
}

/// Token `id`, which may lie beyond the last one.
std::string& token_at(GgmlVocabulary& vocabulary, int32_t id, GgmlTokenType type) {
  const auto at = static_cast<size_t>(id);
  if (at >= vocabulary.tokens.size()) {
    vocabulary.tokens.resize(at + 1);
    vocabulary.types.resize(at + 1, static_cast<int32_t>(GgmlTokenType::unused));
  }
  vocabulary.types[at] = static_cast<int32_t>(type);
  return vocabulary.tokens[at];
}

std::string unused_token(size_t id) {
  return fmt::format("[PAD{}]", id);
}

void refuse_flags(const TokenizerFile& file) {
  const bool rewrites = file.kind == TokenizerFile::Kind::byte_fallback && !file.normalizer.is_null();
  for (const auto& token : file.added) {
    const std::pair<bool, const char*> flags[] = {{token.single_word, "single_word"},
                                                  {token.lstrip, "lstrip"},
                                                  {token.rstrip, "rstrip"},
                                                  {token.normalized && rewrites, "normalized"}};
    for (const auto& [is_set, name] : flags)
      if (is_set)
        refuse_export(fmt::format("the added token \"{}\" with {}", short_line(token.content, kShownPart), name));
  }
}

/// Tokens and types.
void put_tokens(const TokenizerFile& file, GgmlVocabulary& vocabulary) {
  const bool fallback = file.kind == TokenizerFile::Kind::byte_fallback;
  for (const auto& entry : file.vocab) {
    const bool is_byte = fallback && fallback_byte(entry.spelling);
    token_at(vocabulary, entry.id, is_byte ? GgmlTokenType::byte : GgmlTokenType::normal) = entry.spelling;
  }
  for (const auto& token : file.added)
    token_at(vocabulary, token.id, token.special ? GgmlTokenType::control : GgmlTokenType::user_defined) =
        token.content;
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id)
    if (vocabulary.tokens[id].empty()) vocabulary.tokens[id] = unused_token(id);
}

void put_merges(const TokenizerFile& file, GgmlVocabulary& vocabulary) {
  if (!file.ranks.empty()) refuse_export("merges that share a rank");
  for (const Merge& merge : file.merges) {
    const std::string &left = file.spelling(merge.left), &right = file.spelling(merge.right);
    if (left.find(' ', 1) != std::string::npos) refuse_export("a merge of a token that has a space inside it");
    vocabulary.merges.push_back(left + " " + right);
  }
}

GgmlVocabulary byte_level_vocabulary(const TokenizerFile& file) {
  const auto normalizer = Normalizer::from_json(file.normalizer, kExportSource).describe();
  if (!normalizer.empty() && normalizer != "NFC")
    refuse_export(fmt::format("the normalizer \"{}\"", short_line(normalizer, kShownPart)));
  const auto pretokenizer = Pretokenizer::from_json(file.pre_tokenizer, kExportSource);
  GgmlVocabulary vocabulary{.model = "gpt2"};
  const auto name = ggml_pretokenizer_name(pretokenizer, file.ignore_merges);
  if (!name)
    refuse_export(fmt::format("the pre-tokenizer \"{}\" {} ignore_merges, which has no name in GGUF",
                              short_line(pretokenizer.describe(), kShownPart),
                              file.ignore_merges ? "with" : "without"));
  vocabulary.pre = *name;
  put_tokens(file, vocabulary);
  put_merges(file, vocabulary);
  return vocabulary;
}

/// Minus the rank of each token that merging makes, by id.
void put_scores(const TokenizerFile& file, GgmlVocabulary& vocabulary) {
  vocabulary.scores.assign(vocabulary.tokens.size(), 0);
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    const auto type = static_cast<GgmlTokenType>(vocabulary.types[id]);
    if (type == GgmlTokenType::normal || type == GgmlTokenType::unused) vocabulary.scores[id] = kLowestScore;
  }
  uint32_t next = 0;
  for (size_t i = 0; i < file.merges.size(); ++i) {
    float& score = vocabulary.scores[static_cast<size_t>(file.merges[i].result)];
    if (score == kLowestScore) score = -static_cast<float>(file.ranks.empty() ? next++ : file.ranks[i]);
  }
}

/// Whether merges by score are the file's own. Merges from and to added tokens do not count: GGUF never makes them.
bool merges_equal(const TokenizerFile& file, const TokenizerFile& by_score) {
  std::unordered_set<int32_t> added;
  for (const auto& token : file.added) added.insert(token.id);
  std::vector<Merge> own;
  for (const Merge& merge : file.merges)
    if (!added.contains(merge.left) && !added.contains(merge.right) && !added.contains(merge.result))
      own.push_back(merge);
  return std::equal(own.begin(), own.end(), by_score.merges.begin(), by_score.merges.end(),
                    [](const Merge& a, const Merge& b) {
                      return a.left == b.left && a.right == b.right && a.result == b.result;
                    }) &&
         (file.ranks.empty() || file.ranks == by_score.ranks);
}

/// Whether a text's spaces are marked and written again in the same way.
bool spaces_equal(const TokenizerFile& file, const TokenizerFile& by_score) {
  if (file.spells_spaces != by_score.spells_spaces || file.strips_space != by_score.strips_space) return false;
  const auto own = Normalizer::from_json(file.normalizer, kExportSource);
  const auto other = Normalizer::from_json(by_score.normalizer, kExportSource);
  const auto metaspace = Metaspace::from_json(file.pre_tokenizer, own.marks_spaces(), kExportSource);
  if (!metaspace.marks_spaces) return own.describe() == other.describe();
  return own.empty() && metaspace.prepend == Metaspace::Prepend::never && !metaspace.split && other.only_marks_spaces();
}

GgmlVocabulary vocabulary_by_score(const TokenizerFile& file) {
  GgmlVocabulary vocabulary{.model = "llama"};
  put_tokens(file, vocabulary);
  put_scores(file, vocabulary);
  const auto unknown = file.model_rest.value("unk_token", nlohmann::json());
  for (size_t id = 0; id < vocabulary.tokens.size(); ++id) {
    if (unknown != vocabulary.tokens[id]) continue;
    vocabulary.types[id] = static_cast<int32_t>(GgmlTokenType::unknown);
    vocabulary.unknown_token_id = static_cast<int64_t>(id);
  }
  const auto normalizer = Normalizer::from_json(file.normalizer, kExportSource);
  vocabulary.add_space_prefix = normalizer.prepends();
  if (normalizer.describe().find("matches of") != std::string::npos) vocabulary.remove_extra_whitespaces = true;
  const auto by_score = tokenizer_file_of(vocabulary, kExportSource);
  if (!spaces_equal(file, by_score))
    refuse_export("another way to mark spaces, such as Metaspace before the first word");
  if (!merges_equal(file, by_score)) refuse_export("merges that no scores of tokens give");
  return vocabulary;
}

}  // namespace

GgmlVocabulary ggml_vocabulary_of(const TokenizerFile& file) {
  refuse_flags(file);
  return file.kind == TokenizerFile::Kind::byte_level ? byte_level_vocabulary(file) : vocabulary_by_score(file);
}

void add_unused_tokens(GgmlVocabulary& vocabulary, int64_t count) {
  while (std::ssize(vocabulary.tokens) < count) {
    vocabulary.tokens.push_back(unused_token(vocabulary.tokens.size()));
    vocabulary.types.push_back(static_cast<int32_t>(GgmlTokenType::unused));
    if (!vocabulary.scores.empty()) vocabulary.scores.push_back(kLowestScore);
  }
}

void set_special_ids(GgmlVocabulary& vocabulary, const SpecialIds& ids) {
  if (ids.opening) vocabulary.bos_token_id = *ids.opening;
  vocabulary.add_bos_token = ids.opens_prompts;
  if (ids.ends.empty())
    refuse_export(fmt::format("none of its tokens to end texts, for which llama.cpp takes the id {}",
                              vocabulary.model == "llama" ? 2 : 11));
  const int32_t eos = ids.ends.front();
  vocabulary.eos_token_id = eos;
  for (const int32_t id : ids.ends) {
    if (id == eos) continue;
    const bool ends_message = vocabulary.tokens.at(static_cast<size_t>(id)).find("eom") != std::string::npos;
    auto& place = ends_message ? vocabulary.eom_token_id : vocabulary.eot_token_id;
    if (!place) place = id;
  }
}

}  // namespace prism
