#include "prism/report/draw/escape.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(EscapeHtml, LeavesNoCharacterThatCouldStartMarkupOrEndAnAttribute) {
  EXPECT_EQ(escape_html("<b a=\"x\" b='y'>&amp;"), "&lt;b a=&quot;x&quot; b=&#39;y&#39;&gt;&amp;amp;");
  EXPECT_EQ(escape_html("plain, ünïcödé 漢字"), "plain, ünïcödé 漢字");
}

TEST(EscapeHtml, ShowsControlCharactersAndBrokenUtf8AsReplacements) {
  EXPECT_EQ(escape_html(std::string("a\0b", 3)), "a\uFFFDb");
  EXPECT_EQ(escape_html("a\x1b[31mb\x7f"), "a\uFFFD[31mb\uFFFD");
  EXPECT_EQ(escape_html("a\u009bb\u00a0c"), "a\uFFFDb\u00a0c") << "U+009B starts a sequence, U+00A0 is a space";
  EXPECT_EQ(escape_html("a\xff\x62"), "a\uFFFDb");
}

TEST(EscapeHtml, LetsNothingTurnTheDirectionOfWhatFollows) {
  EXPECT_EQ(escape_html("a\u202Eb\u2066c\u2069"), "a\uFFFDb\uFFFDc\uFFFD");
  EXPECT_EQ(escape_html("a\u2029b\u202Fc \u05E9\u200F"), "a\u2029b\u202Fc \u05E9\u200F") << "marks of one letter stay";
}

TEST(EscapeHtml, KeepsLineBreaksAndMakesThemOneKind) {
  EXPECT_EQ(escape_html("a\r\nb\rc\n\td"), "a\nb\nc\n\td");
}

TEST(EscapeScriptJson, IsTheSameJsonWithoutMarkup) {
  EXPECT_EQ(escape_script_json(R"({"a":"</script>&<!--"})"), R"({"a":"\u003c/script\u003e\u0026\u003c!--"})");
  EXPECT_EQ(escape_script_json("[1,\"ü\"]"), "[1,\"ü\"]");
}

TEST(EscapeMarkdown, LeavesOneLineWithoutMarkup) {
  EXPECT_EQ(escape_markdown("a|b\nc"), "a\\|b c");
  EXPECT_EQ(escape_markdown("*x* _y_ `z` [l](u) # ~ ! \\"), "\\*x\\* \\_y\\_ \\`z\\` \\[l\\](u) \\# \\~ \\! \\\\");
  EXPECT_EQ(escape_markdown("<script>&"), "&lt;script&gt;&amp;");
}

TEST(MarkdownCodeBlock, HasAFenceLongerThanAnyInside) {
  EXPECT_EQ(markdown_code_block("a"), "```text\na\n```\n");
  EXPECT_EQ(markdown_code_block("a ```` b\n"), "`````text\na ```` b\n`````\n");
}

}  // namespace
}  // namespace prism
