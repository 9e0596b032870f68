#include "prism/tokenizer/vocabulary.h"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "prism/core/error.h"
#include "prism/tokenizer/byte_alphabet.h"
#include "prism/tokenizer/space_marker.h"
#include "prism/tokenizer/split/unicode_classes.h"

namespace prism {
namespace {

using Kind = TokenizerFile::Kind;

std::string in_quotes(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

/// The text with a space in place of every marker, if decoding puts it there.
std::string with_spaces(std::string_view text, const TokenizerFile& file) {
  std::string result(text);
  if (!file.spells_spaces) return result;
  for (size_t at = 0; (at = result.find(kSpaceMarker, at)) != std::string::npos; ++at)
    result.replace(at, kSpaceMarker.size(), " ");
  return result;
}

/// The bytes that decoding writes for a token; std::nullopt if text cannot be encoded as this token.
std::optional<std::string> decoded_bytes(const std::string& spelling, const TokenizerFile& file) {
  if (file.kind == Kind::byte_level) return bytes_of_spelling(spelling);
  if (const auto byte = fallback_byte(spelling)) return std::string(1, static_cast<char>(*byte));
  return with_spaces(spelling, file);
}

/// The token of each byte, or -1: published byte-level vocabularies may lack control characters and bytes of rare text.
std::array<int32_t, 256> find_byte_tokens(const TokenizerFile& file, const std::string& source) {
  std::array<int32_t, 256> ids{};
  ids.fill(-1);
  for (const auto& entry : file.vocab) {
    if (file.kind == Kind::byte_fallback) {
      if (const auto byte = fallback_byte(entry.spelling)) ids[*byte] = entry.id;
    } else if (const auto bytes = bytes_of_spelling(entry.spelling); bytes && bytes->size() == 1) {
      ids[static_cast<uint8_t>(bytes->front())] = entry.id;
    }
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    const bool may_lack = file.kind == Kind::byte_level && (byte < ' ' || byte > '~');
    PRISM_CHECK(ids[byte] >= 0 || may_lack, "tokenizer",
                "{}: expected a token for each of the 256 bytes, so that every text can be encoded; found none for "
                "byte 0x{:02X} ({}); add it to the vocabulary.",
                source, byte,
                file.kind == Kind::byte_level ? in_quotes(byte_character(static_cast<uint8_t>(byte)))
                                              : fmt::format("\"<0x{:02X}>\"", byte));
  }
  return ids;
}

/// The only character of a text; std::nullopt for other texts.
std::optional<uint32_t> single_character(std::string_view text) {
  const Character character = decode_character(text, 0);
  if (character.length != text.size()) return std::nullopt;
  return character.code;
}

}  // namespace

Vocabulary::Vocabulary(const TokenizerFile& file, const Normalizer& normalizer, const Metaspace& metaspace,
                       const std::string& source) {
  read_tokens(file);
  read_symbols(file, metaspace.marks_spaces || normalizer.marks_spaces(), metaspace.split, source);
  read_added(file, normalizer, source);
}

void Vocabulary::read_tokens(const TokenizerFile& file) {
  int64_t largest = -1;
  for (const auto& entry : file.vocab) largest = std::max<int64_t>(largest, entry.id);
  for (const auto& token : file.added) largest = std::max<int64_t>(largest, token.id);
  bytes.resize(static_cast<size_t>(largest + 1));
  special.resize(bytes.size());
  model_ids.reserve(file.vocab.size());
  const auto is_byte = [&](const auto& entry) {
    return file.kind == Kind::byte_fallback && fallback_byte(entry.spelling).has_value();
  };
  for (const auto& entry : file.vocab) {
    const auto decoded = decoded_bytes(entry.spelling, file);
    // A spelling outside the byte alphabet can only be an added token, whose spelling is its bytes.
    bytes[static_cast<size_t>(entry.id)] = decoded ? *decoded : entry.spelling;
    if (decoded && !is_byte(entry)) model_ids.emplace(*decoded, entry.id);
  }
  // A character that has a token is never encoded as its bytes.
  for (const auto& entry : file.vocab) {
    if (is_byte(entry)) model_ids.emplace(bytes[static_cast<size_t>(entry.id)], entry.id);
  }
}

void Vocabulary::read_symbols(const TokenizerFile& file, bool marks_spaces, bool split, const std::string& source) {
  const auto byte_ids = find_byte_tokens(file, source);
  model = BpeModel(file.merges, file.ranks);
  if (file.kind == Kind::byte_level) {
    symbols = SymbolTable(byte_ids);
    return;
  }
  PRISM_CHECK(!file.ignore_merges, "tokenizer",
              "{}: expected a tokenizer with byte fallback to have \"ignore_merges\": false; found true; it is not "
              "supported, choose another tokenizer.",
              source);
  std::vector<SymbolTable::CharacterToken> characters;
  for (const auto& entry : file.vocab) {
    if (const auto code = single_character(entry.spelling)) characters.push_back({*code, entry.id});
  }
  symbols = SymbolTable(byte_ids, characters, marks_spaces, split);
  // The first and last character of each token, by id.
  std::vector<std::pair<uint32_t, uint32_t>> sides(bytes.size());
  for (const auto& [id, spelling] : file.vocab) {
    sides[static_cast<size_t>(id)] = {decode_character(spelling, 0).code,
                                      decode_character(spelling, previous_character(spelling, spelling.size())).code};
  }
  for (const Merge& merge : file.merges) {
    // Bytes stand for any character without a token.
    if (fallback_byte(file.spelling(merge.left)) || fallback_byte(file.spelling(merge.right))) symbols.join_all();
    symbols.join(sides[static_cast<size_t>(merge.left)].second, sides[static_cast<size_t>(merge.right)].first);
  }
}

void Vocabulary::read_added(const TokenizerFile& file, const Normalizer& normalizer, const std::string& source) {
  std::vector<uint8_t> taken(bytes.size());
  std::unordered_map<std::string_view, int32_t> spellings;
  spellings.reserve(file.vocab.size());
  for (const auto& entry : file.vocab) {
    taken[static_cast<size_t>(entry.id)] = 1;
    spellings.emplace(entry.spelling, entry.id);
  }
  RegexMatcher matcher;
  std::vector<AddedTokenMatcher::Row> first, second;
  for (const auto& token : file.added) {
    const auto id = static_cast<size_t>(token.id);
    const auto in_model = spellings.find(token.content);
    PRISM_CHECK(
        in_model == spellings.end() || in_model->second == token.id, "tokenizer",
        "{}: expected the added token {} to have the id it has in the vocabulary, {}; found {}; change it to that.",
        source, in_quotes(token.content), in_model->second, token.id);
    PRISM_CHECK(in_model != spellings.end() || taken[id] == 0, "tokenizer",
                "{}: expected the added token {} to have a unique id; found {}, which {} also has; change one of them.",
                source, in_quotes(token.content), token.id, in_quotes(bytes[id]));
    PRISM_CHECK(added_ids.emplace(token.content, token.id).second, "tokenizer",
                "{}: expected every added token once; found {} twice; remove one.", source, in_quotes(token.content));
    taken[id] = 1;
    special[id] = token.special;
    const std::string searched =
        token.normalized ? normalizer.apply(token.content, /*prepend=*/true, matcher) : token.content;
    (token.normalized ? second : first).push_back({searched, &token});
    // A word that was found with the marker before it is decoded with a space.
    bytes[id] = token.special ? token.content : with_spaces(searched, file);
  }
  in_text = AddedTokenMatcher(first);
  in_normalized = AddedTokenMatcher(second);
}

}  // namespace prism
