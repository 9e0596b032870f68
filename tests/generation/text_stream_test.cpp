// Text shown token by token: whole characters only, and no part of a stop string.
#include "prism/generation/text_stream.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/core/text/utf8.h"

namespace prism {
namespace {

/// The text shown for each token, then the text of finish().
std::vector<std::string> show(const std::vector<std::string>& tokens, std::vector<std::string> stops = {}) {
  TextStream stream(std::move(stops));
  std::vector<std::string> shown;
  for (const auto& token : tokens) shown.push_back(stream.push(token));
  shown.push_back(stream.finish());
  return shown;
}

using Parts = std::vector<std::string>;

TEST(TextStream, ShowsCharactersOnlyWhenTheyAreWhole) {
  EXPECT_EQ(show({"a", "\xC3", "\xA9", "b"}), (Parts{"a", "", "é", "b", ""}));
  EXPECT_EQ(show({"x\xE2", "\x82", "\xAC!"}), (Parts{"x", "", "€!", ""}));
  EXPECT_EQ(show({"\xF0\x9F", "\x98", "\x80\xF0", "\x9F\x98\x80"}), (Parts{"", "", "😀", "😀", ""}));
}

TEST(TextStream, GivesTheSameTextHoweverItsBytesAreCut) {
  const std::string text = "naïve \xFF 漢字 😀\xE2\x82 end\xC3";
  const std::string expected = replace_invalid_utf8(text);
  for (size_t first = 0; first <= text.size(); ++first) {
    for (size_t second = first; second <= text.size(); ++second) {
      std::string joined;
      for (const auto& part : show({text.substr(0, first), text.substr(first, second - first), text.substr(second)})) {
        EXPECT_EQ(find_invalid_utf8(part), std::string::npos);
        joined += part;
      }
      ASSERT_EQ(joined, expected) << first << " " << second;
    }
  }
}

TEST(TextStream, ReplacesBytesThatCanNoLongerBecomeACharacter) {
  EXPECT_EQ(show({"\xE2\x82", "A"}), (Parts{"", "\uFFFD\uFFFDA", ""}));
  EXPECT_EQ(show({"\x80"}), (Parts{"\uFFFD", ""}));
  EXPECT_EQ(show({"a\xE2\x82"}), (Parts{"a", "\uFFFD\uFFFD"}));
}

TEST(TextStream, StopsBeforeAStopStringThatSpansTokens) {
  EXPECT_EQ(show({"one", "\n", "\ntwo", "three"}, {"\n\n"}), (Parts{"one", "", "", "", ""}));
  EXPECT_EQ(show({"ab ST", "O", "P cd"}, {"STOP"}), (Parts{"ab ", "", "", ""}));
}

TEST(TextStream, ShowsWhatOnlyLookedLikeAStopString) {
  EXPECT_EQ(show({"one\n", "two", "\n"}, {"\n\n"}), (Parts{"one", "\ntwo", "", "\n"}));
  // After the second a, the first can no longer begin the stop string.
  EXPECT_EQ(show({"a", "a", "b"}, {"abc"}), (Parts{"", "a", "", "ab"}));
}

TEST(TextStream, StopsAtTheEarliestOfSeveralStopStrings) {
  EXPECT_EQ(show({"one two three"}, {"three", "w"}), (Parts{"one t", ""}));
  EXPECT_EQ(show({"one two three"}, {"w", "three"}), (Parts{"one t", ""}));
  EXPECT_EQ(show({"one two three"}, {"wo", "two"}), (Parts{"one ", ""}));
}

TEST(TextStream, FindsStopStringsOfCutCharacters) {
  EXPECT_EQ(show({"a\xE2", "\x82",
                  "\xAC"
                  "b"},
                 {"€"}),
            (Parts{"a", "", "", ""}));
  EXPECT_EQ(show({"a\xE2\x82", "\xAB"}, {"€"}), (Parts{"a", "₫", ""}));
}

TEST(TextStream, RejectsAnEmptyStopString) {
  EXPECT_THROW(TextStream({"a", ""}), InputError);
}

}  // namespace
}  // namespace prism
