#include "prism/tokenizer/bpe/symbol_table.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "prism/core/random.h"
#include "prism/tokenizer/space_marker.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

constexpr int32_t kByteBase = 1000;

std::array<int32_t, 256> byte_tokens() {
  std::array<int32_t, 256> ids{};
  for (size_t byte = 0; byte < 256; ++byte) ids[byte] = kByteBase + static_cast<int32_t>(byte);
  return ids;
}

/// Merges over a few characters, and the table that knows them.
struct RandomTable {
  RandomTable(Random& random, size_t count, bool marks_spaces, bool split) {
    const std::vector<uint32_t> letters = {'a', 'b', 'c', kSpaceMarkerCode, 0xE9, 0x706F, ' '};
    std::vector<SymbolTable::CharacterToken> characters;
    std::vector<std::pair<uint32_t, uint32_t>> sides;  // of each token
    for (const uint32_t letter : letters) {
      characters.push_back({letter, static_cast<int32_t>(sides.size())});
      sides.emplace_back(letter, letter);
    }
    table = SymbolTable(byte_tokens(), characters, marks_spaces, split);
    std::set<std::pair<uint64_t, uint64_t>> pairs;
    for (size_t i = 0; i < count; ++i) {
      const auto left = random.below(sides.size()), right = random.below(sides.size());
      // A pair of tokens has one result, and split tables never join a marker to what precedes it.
      if (!pairs.emplace(left, right).second || (split && sides[right].first == kSpaceMarkerCode)) continue;
      merges.push_back({static_cast<int32_t>(left), static_cast<int32_t>(right), static_cast<int32_t>(sides.size())});
      table.join(sides[left].second, sides[right].first);
      sides.emplace_back(sides[left].first, sides[right].second);
    }
    model = BpeModel(merges);
  }

  std::vector<int32_t> encode(std::string_view text) {
    std::vector<int32_t> symbols, ids;
    table.append(text, symbols);
    model.encode(symbols, scratch, ids);
    return ids;
  }

  SymbolTable table;
  std::vector<Merge> merges;
  BpeModel model;
  BpeScratch scratch;
};

TEST(SymbolTable, GivesPiecesWhoseIdsAreThoseOfTheWholeText) {
  Random random(8);
  const std::vector<std::string> pool = {"a", "b", "c", " ", "  ", "\u2581", "é", "灯", "x", "🙂", "ab", "\n"};
  size_t pieces = 0, texts = 0;
  for (int round = 0; round < 600; ++round) {
    RandomTable rules(random, random.below(30), round % 2 == 0, round % 3 == 0);
    for (int i = 0; i < 10; ++i, ++texts) {
      std::string text;
      for (uint64_t n = 1 + random.below(40); n > 0; --n) text += pool[random.below(pool.size())];
      std::vector<int32_t> by_pieces;
      for (size_t at = 0, end = 0; at < text.size(); at = end, ++pieces) {
        end = rules.table.piece_end(text, at);
        ASSERT_GT(end, at);
        const auto ids = rules.encode(std::string_view(text).substr(at, end - at));
        by_pieces.insert(by_pieces.end(), ids.begin(), ids.end());
      }
      ASSERT_EQ(by_pieces, rules.encode(text)) << text;
    }
  }
  EXPECT_GT(pieces, 5 * texts);  // cuts are found
}

TEST(SymbolTable, BeginsAPieceAtEveryMarkerIfItSplits) {
  const std::vector<SymbolTable::CharacterToken> characters = {{'a', 0}, {kSpaceMarkerCode, 1}};
  SymbolTable table(byte_tokens(), characters, /*marks_spaces=*/true, /*split=*/true);
  table.join('a', kSpaceMarkerCode);
  table.join(kSpaceMarkerCode, kSpaceMarkerCode);
  table.join(kSpaceMarkerCode, 'a');
  EXPECT_EQ(table.piece_end("a  a", 0), 1u);
  EXPECT_EQ(table.piece_end("a  a", 1), 2u);
  EXPECT_EQ(table.piece_end("a  a", 2), 4u);
  EXPECT_TRUE(table.joins_marker("a"));
  EXPECT_FALSE(table.joins_marker(" "));
}

TEST(SymbolTable, SpellsCharactersWithoutATokenAsBytes) {
  const std::vector<SymbolTable::CharacterToken> characters = {{'a', 0}};
  const SymbolTable table(byte_tokens(), characters, /*marks_spaces=*/true, /*split=*/false);
  std::vector<int32_t> symbols;
  table.append("aé ", symbols);
  EXPECT_EQ(symbols, (std::vector<int32_t>{0, kByteBase + 0xC3, kByteBase + 0xA9, kByteBase + 0xE2, kByteBase + 0x96,
                                           kByteBase + 0x81}));
}

TEST(SymbolTable, TakesAllOfATextAsOnePieceIfBytesMerge) {
  const std::vector<SymbolTable::CharacterToken> characters = {{'a', 0}};
  SymbolTable table(byte_tokens(), characters, /*marks_spaces=*/false, /*split=*/false);
  EXPECT_EQ(table.piece_end("aé b", 0), 1u);
  table.join_all();
  EXPECT_EQ(table.piece_end("aé b", 0), 5u);
}

}  // namespace
}  // namespace prism
