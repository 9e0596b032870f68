#include "prism/data/labelled/words.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(WordText, IsInLowerCaseWithPunctuationApart) {
  const WordText words;
  EXPECT_EQ(words("The U.S. won, 3:2!"), "the u . s . won , 3 : 2 !");
  EXPECT_EQ(words("  A\tB\n\nC  "), "a b c");
  EXPECT_EQ(words("( born 26 February 1952 )"), words("(born 26 February 1952)"));
  EXPECT_EQ(words("ÉCOLE «Ñandú» $5 A+B"), "école « ñandú » $ 5 a + b");
  EXPECT_EQ(words("don't"), "don ' t");
  EXPECT_EQ(words(""), "");
  EXPECT_EQ(words(" \n "), "");
}

TEST(WordText, IsItsOwnWordText) {
  const WordText words;
  for (const char* text : {"The U.S. won, 3:2!", "ǅ İstanbul ẞ", "a---b...c", "Σίσυφος ΣΑΣ", "x\u00A0y\u2003z"}) {
    const auto once = words(text);
    EXPECT_EQ(words(once), once) << text;
  }
}

TEST(WordText, HandlesLongTexts) {
  const WordText words;
  std::string text, expected;
  for (int i = 0; i < 20'000; ++i) text += "A,", expected += i == 0 ? "a ," : " a ,";
  EXPECT_EQ(words(text), expected);
}

}  // namespace
}  // namespace prism
