// Characters that PCRE2 does not know are in the class that Hugging Face's tokenizers give them.
#include "prism/tokenizer/split/stand_ins.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "prism/tokenizer/normalize/normalizer.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/split/pretokenizer.h"
#include "prism/tokenizer/split/unicode_classes.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using Pieces = std::vector<std::string>;

Pieces pieces_of(const Pretokenizer& pretokenizer, const std::string& text) {
  RegexMatcher matcher;
  PieceCursor cursor(pretokenizer, text, matcher);
  Pieces result;
  size_t begin = 0;
  for (std::vector<size_t> ends; cursor.next(ends);)
    for (const size_t end : ends) {
      result.push_back(text.substr(begin, end - begin));
      begin = end;
    }
  return result;
}

TEST(StandIns, GiveEveryCharacterItsClass) {
  const Regex letter(R"(\p{L})", "test"), number(R"(\p{N})", "test"), space(R"(\s)", "test");
  RegexMatcher matcher;
  int replaced = 0;
  for (uint32_t code = 0; code < 0x110000; ++code) {
    if (code >= 0xD800 && code < 0xE000) continue;
    const std::string text = utf8(code);
    const auto stand_in = with_stand_ins(text);
    if (stand_in) {
      ++replaced;
      ASSERT_EQ(stand_in->size(), text.size()) << code;
      ASSERT_NE(*stand_in, text) << code;
      ASSERT_FALSE(with_stand_ins(*stand_in)) << code;
    }
    const std::string& searched = stand_in ? *stand_in : text;
    const int found = (matcher.search(letter, searched, 0) ? kLetter : 0) |
                      (matcher.search(number, searched, 0) ? kNumber : 0) |
                      (matcher.search(space, searched, 0) ? kSpace : 0);
    ASSERT_EQ(found, character_classes()[code] & (kLetter | kNumber | kSpace)) << code;
  }
  EXPECT_EQ(replaced, 10302) << "what Unicode 15 to 16 assigned, and U+180E";
}

TEST(StandIns, KeepOffsetsAndOtherCharacters) {
  EXPECT_EQ(with_stand_ins(""), std::nullopt);
  EXPECT_EQ(with_stand_ins("The lamp, né 灯台守 🙂"), std::nullopt);
  const std::string text = "é\u180e灯\U00031350b", found = with_stand_ins(text).value();
  EXPECT_EQ(found.size(), text.size());
  EXPECT_EQ(found, "é\u206a灯\U00030000b");
}

/// The expected pieces are those of tokenizers 0.23.3.
TEST(StandIns, SplitAsHuggingFacesTokenizersDo) {
  const auto tekken = Pretokenizer::from_json(pretokenizer_json(find_ggml_pretokenizer("tekken", "test")), "test");
  EXPECT_EQ(pieces_of(tekken, "a\U00031350"), (Pieces{"a\U00031350"}));
  EXPECT_EQ(pieces_of(tekken, "\u180e!"), (Pieces{"\u180e!"}));
  EXPECT_EQ(pieces_of(tekken, " \u180ea"), (Pieces{" \u180e", "a"}));
  EXPECT_EQ(pieces_of(tekken, "\u180e \u180e"), (Pieces{"\u180e", " \u180e"}));
  EXPECT_EQ(pieces_of(tekken, "a\u0897b"), (Pieces{"a\u0897b"}));
  EXPECT_EQ(pieces_of(tekken, "1\U00010d40"), (Pieces{"1", "\U00010d40"}));
  EXPECT_EQ(pieces_of(tekken, "\U0001e030b!"), (Pieces{"\U0001e030b", "!"}));
}

TEST(StandIns, AreNotUsedForAPatternThatNamesSuchACharacter) {
  const auto pretokenizer = Pretokenizer::from_pattern("\U00031350");
  EXPECT_EQ(pieces_of(pretokenizer, "a\U00031350b\U00031351"), (Pieces{"a", "\U00031350", "b\U00031351"}));
}

TEST(StandIns, AreNotWrittenByNormalizers) {
  const auto json = nlohmann::json::parse(R"({"type": "Replace", "pattern": {"Regex": "\\s+"}, "content": "_"})");
  RegexMatcher matcher;
  EXPECT_EQ(Normalizer::from_json(json, "test").apply("a \u180e\U00031350", true, matcher), "a_\u180e\U00031350");
}

}  // namespace
}  // namespace prism
