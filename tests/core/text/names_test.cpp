#include "prism/core/text/names.h"

#include <gtest/gtest.h>

#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(Names, FindsTheNearestByEditDistance) {
  const std::vector<std::string> names = {"heads", "kv_heads", "head_dim", "rotary"};
  EXPECT_EQ(nearest_name("haeds", names), "heads");
  EXPECT_EQ(nearest_name("kv_head", names), "kv_heads");
  EXPECT_EQ(nearest_name("head_dims", names), "head_dim");
  EXPECT_EQ(nearest_name("heads", names), "heads");
}

TEST(Names, NamesNothingThatIsNoMisspelling) {
  EXPECT_EQ(nearest_name("learning_rate", {"heads", "rotary"}), "");
  EXPECT_EQ(nearest_name("x", {}), "");
  // Two edits are always allowed, three only for names of nine letters or more.
  EXPECT_EQ(nearest_name("abcd", {"abxy"}), "abxy");
  EXPECT_EQ(nearest_name("abcd", {"axyz"}), "");
  EXPECT_EQ(nearest_name("abcdefghi", {"xyzdefghi"}), "xyzdefghi");
  EXPECT_EQ(nearest_name("abcdefgh", {"xyzdefgh"}), "");
}

TEST(Names, TakesLettersOfAnotherCaseAsEqual) {
  EXPECT_EQ(nearest_name("PIQA", {"boolq", "piqa"}), "piqa");
  EXPECT_EQ(nearest_name("Bolq", {"BOOLQ", "piqa"}), "BOOLQ");
}

TEST(Names, TakesTheFirstOfTwoThatAreEquallyNear) {
  EXPECT_EQ(nearest_name("bat", {"cat", "rat"}), "cat");
}

TEST(Names, AreJoinedAsInASentence) {
  EXPECT_EQ(join_names({}), "");
  EXPECT_EQ(join_names({"a"}), "a");
  EXPECT_EQ(join_names({"a", "b"}), "a and b");
  EXPECT_EQ(join_names({"a", "b", "c"}), "a, b and c");
}

TEST(ShellWord, IsQuotedOnlyWhereAShellWouldTakeItApart) {
  EXPECT_EQ(shell_word("runs/a-1.b"), "runs/a-1.b");
  EXPECT_EQ(shell_word("my run"), "'my run'");
  EXPECT_EQ(shell_word("it's"), "'it'\\''s'");
  EXPECT_EQ(shell_word(""), "''");
}

TEST(Names, AreFoundInATableOrAnsweredWithTheKnownOnes) {
  const std::map<std::string, int> table = {{"reference", 1}, {"torch", 2}};
  EXPECT_EQ(find_by_name(table, "torch", "attend", "backend"), 2);
  try {
    find_by_name(table, "refrence", "attend", "backend");
    FAIL() << "an unknown name was accepted";
  } catch (const InputError& error) {
    EXPECT_STREQ(
        error.what(),
        "[attend] expected a backend that is one of reference and torch; found \"refrence\"; did you mean reference?");
  }
  EXPECT_EQ(message_of<InputError>([] {
              find_by_name(std::map<std::string, int>{{"one", 1}}, "x", "eval", "task");
            }),
            "[eval] expected one, the only task; found \"x\"; write one.");
}

}  // namespace
}  // namespace prism
