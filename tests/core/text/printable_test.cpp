#include "prism/core/text/printable.h"

#include <gtest/gtest.h>

#include <string>

namespace prism {
namespace {

TEST(PlainLine, CannotMoveTheCursor) {
  EXPECT_EQ(plain_line("a\nb\tc\x1b[2J\r\nd"), "a b c\uFFFD[2J d");
}

TEST(DisplayWidth, CountsCharactersNotBytes) {
  EXPECT_EQ(display_width("a ± ü"), 5U);
  EXPECT_EQ(display_width(""), 0U);
}

TEST(ShortLine, CutsBetweenCharacters) {
  EXPECT_EQ(short_line("äöü", 3), "äöü");
  EXPECT_EQ(short_line("äöüß", 3), "äö…");
}

TEST(MessageText, KeepsTheBeginningAndTheEndOfALongLine) {
  const std::string sentence = "[read] expected x; found " + std::string(5000, 'y') + "; choose another.";
  const std::string shown = message_text(sentence + "\nnext\x1b[2J\n");
  EXPECT_TRUE(shown.starts_with("[read] expected x; found yyy"));
  EXPECT_NE(shown.find("yyy; choose another.\nnext\uFFFD[2J\n"), std::string::npos) << shown;
  EXPECT_LT(shown.size(), 1100U);
  const std::string whole(1000, 'z');
  EXPECT_EQ(message_text(whole), whole);
}

}  // namespace
}  // namespace prism
