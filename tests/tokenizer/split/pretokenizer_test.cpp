#include "prism/tokenizer/split/pretokenizer.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/tokenizer/split/scanner.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

std::vector<std::string> pieces(const Pretokenizer& pretokenizer, std::string_view text) {
  RegexMatcher matcher;
  PieceCursor cursor(pretokenizer, text, matcher);
  std::vector<std::string> result;
  std::vector<size_t> ends;
  size_t begin = 0;
  while (cursor.next(ends)) {
    for (const size_t end : ends) {
      result.emplace_back(text.substr(begin, end - begin));
      begin = end;
    }
  }
  return result;
}

/// The pattern run by PCRE2. A group around it prevents it from being recognised and run by a scanner.
Pretokenizer by_regex(std::string_view pattern) {
  return Pretokenizer::from_pattern("(?:" + std::string(pattern) + ")");
}

TEST(Pretokenizer, ScansAsTheRegularExpressionsMatch) {
  const std::vector<std::string> pool = {"'",
                                         "s",
                                         "S",
                                         "t",
                                         "re",
                                         "VE",
                                         "ll",
                                         "d",
                                         "m",
                                         "ſ",
                                         " ",
                                         "  ",
                                         "\n",
                                         "\r\n",
                                         "\t",
                                         "\x0b",
                                         "1",
                                         "23",
                                         "½",
                                         "٣",
                                         "é",
                                         "日本",
                                         "\u00a0",
                                         "\u3000",
                                         "\u0301",
                                         "!",
                                         "?.",
                                         "🙂",
                                         std::string(1, '\0'),
                                         "_",
                                         "x",
                                         "Ω",
                                         "\u2028",
                                         "\u0085",
                                         "'ſ",
                                         "K",
                                         "\u180e",
                                         "\u0897",
                                         "\U00031350",
                                         "\U00010d40"};
  const struct { std::string_view pattern; } rows[] = {{kGpt2Pattern}, {kLlama3Pattern}, {kQwen2Pattern}};
  for (const auto& [pattern] : rows) {
    const Pretokenizer scanner = Pretokenizer::from_pattern(std::string(pattern)), regex = by_regex(pattern);
    ASSERT_NE(scanner.steps()[0].kind, SplitStep::Kind::regex);
    ASSERT_EQ(regex.steps()[0].kind, SplitStep::Kind::regex);
    Random random(3);
    for (int round = 0; round < 20000; ++round) {
      std::string text;
      for (uint64_t i = random.below(24); i > 0; --i) {
        text += random.below(8) == 0 ? utf8(random_code_point(random)) : pool[random.below(pool.size())];
      }
      ASSERT_EQ(pieces(scanner, text), pieces(regex, text)) << pattern << "\n" << text;
    }
  }
}

TEST(Pretokenizer, KeepsEveryByteAndCutsOnlyBetweenCharacters) {
  const Pretokenizer rows[] = {Pretokenizer::from_pattern("gpt2"), Pretokenizer::from_pattern("llama3"),
                               Pretokenizer::from_pattern("[aeiou]+|(?=x)|$")};
  Random random(4);
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (uint64_t i = random.below(30); i > 0; --i)
      text += random.below(2) == 0 ? "ax e" : utf8(random_code_point(random));
    for (const auto& pretokenizer : rows) {
      std::string joined;
      for (const auto& piece : pieces(pretokenizer, text)) {
        EXPECT_FALSE(piece.empty());
        EXPECT_NE(static_cast<uint8_t>(piece[0]) & 0xC0, 0x80);
        joined += piece;
      }
      EXPECT_EQ(joined, text);
    }
  }
}

TEST(Pretokenizer, CutsAtMatchesAndBetweenThem) {
  using Pieces = std::vector<std::string>;
  EXPECT_EQ(pieces(Pretokenizer::from_pattern("b+"), "aabba"), (Pieces{"aa", "bb", "a"}));
  EXPECT_EQ(pieces(Pretokenizer::from_pattern("x"), "aab"), (Pieces{"aab"}));
  EXPECT_EQ(pieces(Pretokenizer::from_pattern("(?=b)"), "aabba"), (Pieces{"aa", "b", "ba"}));
  EXPECT_EQ(pieces(Pretokenizer::from_pattern("^x"), "ax\nxa"), (Pieces{"ax\n", "x", "a"}));
  EXPECT_EQ(pieces(Pretokenizer::from_pattern("gpt2"), ""), (Pieces{}));
}

TEST(Pretokenizer, CutsSafelyWhereBothHalvesGiveThePiecesOfTheWhole) {
  for (const char* pattern : {"gpt2", "llama3"}) {
    const Pretokenizer pretokenizer = Pretokenizer::from_pattern(pattern);
    Random random(5);
    int cuts = 0;
    for (int round = 0; round < 3000; ++round) {
      std::string text;
      const std::vector<std::string> pool = {"a", "s", "'s", " ", "  ", "\n", "!", "1", "é", "\t"};
      for (uint64_t i = random.below(30); i > 0; --i) text += pool[random.below(pool.size())];
      const size_t cut = pretokenizer.safe_cut(text, random.below(text.size() + 1));
      if (cut == text.size()) continue;
      ++cuts;
      auto halves = pieces(pretokenizer, text.substr(0, cut));
      for (auto& piece : pieces(pretokenizer, text.substr(cut))) halves.push_back(std::move(piece));
      ASSERT_EQ(halves, pieces(pretokenizer, text)) << text << " at " << cut;
    }
    EXPECT_GT(cuts, 300);
  }
  EXPECT_EQ(by_regex("a.b").safe_cut("x a b", 1), 5u);  // an unknown pattern may match across any position
}

TEST(Pretokenizer, SaysWhenAPatternBacktracksWithoutEnd) {
  const Pretokenizer pretokenizer = Pretokenizer::from_pattern("(a+)+[bc]");
  EXPECT_THROW(pieces(pretokenizer, std::string(60, 'a')), InputError);
}

}  // namespace
}  // namespace prism
