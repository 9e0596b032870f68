#include "prism/tokenizer/sources/scored_pieces.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "prism/core/error.h"
#include "prism/core/text/printable.h"
#include "prism/core/text/utf8.h"
#include "prism/tokenizer/space_marker.h"

namespace prism {
namespace {

using nlohmann::json;
using PieceKind = ScoredPiece::Kind;

constexpr size_t kShownPiece = 60;

struct ScoredMerge {
  float score;
  uint16_t left_bytes, right_bytes;
  Merge merge;
};

void check_piece(const ScoredPiece& piece, size_t id, const std::string& source) {
  PRISM_CHECK(!piece.text.empty(), "tokenizer",
              "{}: expected tokens of at least one byte; found token {} empty; "
              "the file is damaged; restore it.",
              source, id);
  PRISM_CHECK(find_invalid_utf8(piece.text) == std::string::npos, "tokenizer",
              "{}: expected tokens in UTF-8; found that token {} is not; the file is damaged; restore it.", source, id);
  PRISM_CHECK(
      piece.kind != PieceKind::byte || fallback_byte(piece.text), "tokenizer",
      "{}: expected the byte tokens to be <0x00> to <0xFF>; found \"{}\" at {}; the file is damaged; restore it.",
      source, short_line(piece.text, kShownPiece), id);
  if (piece.kind != PieceKind::normal) return;
  PRISM_CHECK(piece.text.size() <= kMostPieceBytes, "tokenizer",
              "{}: expected tokens of at most {} bytes; found one of {} at {}; choose another tokenizer.", source,
              kMostPieceBytes, piece.text.size(), id);
  PRISM_CHECK(!std::isnan(piece.score), "tokenizer",
              "{}: expected every token to have a score; found NaN for \"{}\" at {}; the file is damaged; restore it.",
              source, short_line(piece.text, kShownPiece), id);
}

/// Ids by text, of normal pieces.
using NormalIds = std::unordered_map<std::string_view, int32_t>;

NormalIds check_pieces(const std::vector<ScoredPiece>& pieces, const std::string& source) {
  PRISM_CHECK(pieces.size() <= static_cast<size_t>(kMaxTokens), "tokenizer",
              "{}: expected at most {} tokens; found {}; choose another tokenizer.", source, kMaxTokens, pieces.size());
  std::unordered_map<std::string_view, int32_t> all;
  all.reserve(pieces.size());
  for (size_t id = 0; id < pieces.size(); ++id) {
    check_piece(pieces[id], id, source);
    const auto [other, added] = all.emplace(pieces[id].text, static_cast<int32_t>(id));
    PRISM_CHECK(added, "tokenizer",
                "{}: expected every token once; found \"{}\" at {} and {}; the file is damaged; restore it.", source,
                short_line(pieces[id].text, kShownPiece), other->second, id);
  }
  std::erase_if(all,
                [&](const auto& row) { return pieces[static_cast<size_t>(row.second)].kind != PieceKind::normal; });
  return all;
}

std::vector<ScoredMerge> find_merges(const std::vector<ScoredPiece>& pieces, const NormalIds& ids) {
  std::vector<ScoredMerge> merges;
  for (size_t id = 0; id < pieces.size(); ++id) {
    if (pieces[id].kind != PieceKind::normal) continue;
    const std::string_view text = pieces[id].text;
    for (size_t cut = 1; cut < text.size(); ++cut) {
      if ((static_cast<uint8_t>(text[cut]) & 0xC0) == 0x80) continue;
      const auto left = ids.find(text.substr(0, cut));
      if (left == ids.end()) continue;
      const auto right = ids.find(text.substr(cut));
      if (right == ids.end()) continue;
      merges.push_back({pieces[id].score,
                        static_cast<uint16_t>(cut),
                        static_cast<uint16_t>(text.size() - cut),
                        {left->second, right->second, static_cast<int32_t>(id)}});
    }
  }
  // Among equal scores the order matters to programs that give every merge its own rank: transformers, which makes such
  // files from SentencePiece models, puts longer parts first.
  std::sort(merges.begin(), merges.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    if (a.score != b.score) return a.score > b.score;
    return std::make_tuple(b.left_bytes, b.right_bytes, a.merge.result) <
           std::make_tuple(a.left_bytes, a.right_bytes, b.merge.result);
  });
  return merges;
}

json replace_regex(const char* pattern, const char* content) {
  return {{"type", "Replace"}, {"pattern", {{"Regex", pattern}}}, {"content", content}};
}

json normalizer_of(const ScoredOptions& options) {
  json steps = json::array();
  if (options.remove_extra_spaces) {
    steps.push_back(replace_regex("\\A +", ""));
    // Looking behind keeps the time linear: only the first character of a run is tried.
    steps.push_back(replace_regex("(?<![ \u2581])[ \u2581]+\\z", ""));
    steps.push_back(replace_regex("  +", " "));
  }
  if (options.add_prefix) steps.push_back({{"type", "Prepend"}, {"prepend", kSpaceMarker}});
  steps.push_back({{"type", "Replace"}, {"pattern", {{"String", " "}}}, {"content", kSpaceMarker}});
  return {{"type", "Sequence"}, {"normalizers", steps}};
}

json decoder_of(bool strips_space) {
  json steps = {{{"type", "Replace"}, {"pattern", {{"String", kSpaceMarker}}}, {"content", " "}},
                {{"type", "ByteFallback"}},
                {{"type", "Fuse"}}};
  if (strips_space) steps.push_back({{"type", "Strip"}, {"content", " "}, {"start", 1}, {"stop", 0}});
  return {{"type", "Sequence"}, {"decoders", steps}};
}

}  // namespace

TokenizerFile file_of_pieces(const std::vector<ScoredPiece>& pieces, const ScoredOptions& options,
                             const std::string& source) {
  const auto merges = find_merges(pieces, check_pieces(pieces, source));
  TokenizerFile file;
  file.kind = TokenizerFile::Kind::byte_fallback;
  json unknown;
  for (size_t id = 0; id < pieces.size(); ++id) {
    const ScoredPiece& piece = pieces[id];
    file.vocab.push_back({static_cast<int32_t>(id), piece.text});
    if (piece.kind == PieceKind::unknown && unknown.is_null()) unknown = piece.text;
    if (piece.kind == PieceKind::normal || piece.kind == PieceKind::byte) continue;
    AddedToken token;
    token.id = static_cast<int32_t>(id);
    token.content = piece.text;
    token.special = piece.kind != PieceKind::user_defined;
    file.added.push_back(std::move(token));
  }
  uint32_t rank = 0;
  for (size_t i = 0; i < merges.size(); ++i) {
    if (i > 0 && merges[i].score != merges[i - 1].score) ++rank;
    file.merges.push_back(merges[i].merge);
    file.ranks.push_back(rank);
  }
  if (size_t{rank} + 1 >= merges.size()) file.ranks.clear();  // none is shared
  file.spells_spaces = true;
  file.strips_space = options.add_prefix || options.remove_extra_spaces;
  file.normalizer = normalizer_of(options);
  file.rest["decoder"] = decoder_of(file.strips_space);
  file.model_rest = {{"dropout", nullptr}, {"unk_token", unknown},  {"continuing_subword_prefix", nullptr},
                     {"fuse_unk", true},   {"byte_fallback", true}, {"end_of_word_suffix", nullptr}};
  return file;
}

}  // namespace prism
