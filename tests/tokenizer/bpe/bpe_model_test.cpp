#include "prism/tokenizer/bpe/bpe_model.h"

#include <gtest/gtest.h>

#include <map>

#include "prism/core/random.h"
#include "prism/tokenizer/bpe/piece_cache.h"

namespace prism {
namespace {

/// Every byte is its own token.
std::vector<int32_t> symbols(std::string_view piece) {
  std::vector<int32_t> ids;
  for (const char byte : piece) ids.push_back(static_cast<uint8_t>(byte));
  return ids;
}

/// Merges by definition: each merge scans the whole piece.
std::vector<int32_t> merge_slowly(std::string_view piece, const std::vector<Merge>& merges,
                                  const std::vector<uint32_t>& ranks) {
  std::map<std::pair<int32_t, int32_t>, std::pair<uint32_t, int32_t>> rules;
  for (size_t i = 0; i < merges.size(); ++i) rules[{merges[i].left, merges[i].right}] = {ranks[i], merges[i].result};
  std::vector<int32_t> ids = symbols(piece);
  while (true) {
    size_t best = ids.size();
    std::pair<uint32_t, int32_t> rule{UINT32_MAX, 0};
    for (size_t i = 0; i + 1 < ids.size(); ++i) {
      const auto found = rules.find({ids[i], ids[i + 1]});
      if (found != rules.end() && found->second.first < rule.first) best = i, rule = found->second;
    }
    if (best == ids.size()) return ids;
    ids[best] = rule.second;
    ids.erase(ids.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

/// Rules over a few letters. As in training, every token so far may be part of the next. The order is random.
std::vector<Merge> random_merges(Random& random, size_t count) {
  std::vector<int32_t> tokens = {'a', 'b', 'c'};
  std::vector<Merge> merges;
  for (int32_t id = 256; merges.size() < count; ++id) {
    merges.push_back({tokens[random.below(tokens.size())], tokens[random.below(tokens.size())], id});
    tokens.push_back(id);
  }
  for (size_t i = merges.size(); i > 1; --i) std::swap(merges[i - 1], merges[random.below(i)]);
  return merges;
}

TEST(BpeModel, MergesAsTheDefinitionSaysWhateverTheLength) {
  Random random(6);
  BpeScratch scratch;
  for (int round = 0; round < 400; ++round) {
    const auto merges = random_merges(random, 1 + random.below(40));
    // In every second round several merges share a rank, as pieces of equal score do.
    const bool shared = round % 2 == 1;
    std::vector<uint32_t> ranks;
    for (size_t i = 0; i < merges.size(); ++i)
      ranks.push_back(shared ? static_cast<uint32_t>(random.below(5)) : static_cast<uint32_t>(i));
    const BpeModel model = shared ? BpeModel(merges, ranks) : BpeModel(merges);
    for (const size_t length : {1u, 2u, 3u, 17u, 63u, 64u, 65u, 66u, 200u}) {
      std::string piece;
      for (size_t i = 0; i < length; ++i) piece += static_cast<char>('a' + random.below(random.below(3) + 1));
      std::vector<int32_t> ids = {-7};  // encode() must keep existing ids
      model.encode(symbols(piece), scratch, ids);
      auto expected = merge_slowly(piece, merges, ranks);
      expected.insert(expected.begin(), -7);
      ASSERT_EQ(ids, expected) << piece;
    }
  }
}

TEST(BpeModel, LetsTheLaterOfTwoRulesForOnePairHold) {
  const BpeModel model(std::vector<Merge>{{'a', 'b', 256}, {'b', 'c', 257}, {'a', 'b', 258}});
  BpeScratch scratch;
  std::vector<int32_t> ids;
  model.encode(symbols("abcab"), scratch, ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{'a', 257, 258}));
}

TEST(BpeModel, LeavesBytesAloneWithoutRules) {
  const BpeModel model(std::vector<Merge>{});
  BpeScratch scratch;
  std::vector<int32_t> ids;
  model.encode(symbols("ab"), scratch, ids);
  EXPECT_EQ(ids, (std::vector<int32_t>{'a', 'b'}));
}

TEST(PieceCache, GivesBackWhatWasPutInOrNothing) {
  PieceCache cache;
  Random random(7);
  std::map<std::string, std::vector<int32_t>> truth;
  size_t hits = 0;
  for (int round = 0; round < 200000; ++round) {
    // All lengths around the limits of the short form. Zero bytes must not be mistaken for the end.
    std::string piece(1 + random.below(20), '\0');
    for (auto& byte : piece) byte = static_cast<char>(random.below(3));
    auto& ids = truth[piece];
    if (ids.empty()) ids.assign(1 + random.below(6), static_cast<int32_t>(truth.size()));
    std::vector<int32_t> found;
    const std::string readable = piece + "0123456789abcdef";
    const bool in_text = random.below(2) == 0;  // with and without text after the piece
    if (cache.append(in_text ? std::string_view(readable).substr(0, piece.size()) : std::string_view(piece),
                     in_text ? readable.size() : piece.size(), found)) {
      ++hits;
      ASSERT_EQ(found, ids);
    } else {
      cache.insert(piece, ids.data(), ids.size());
    }
  }
  EXPECT_GT(hits, 1000u);
}

}  // namespace
}  // namespace prism
