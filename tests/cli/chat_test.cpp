// prism chat and prism generate --chat.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "tests/cli/commands.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// A copy of the trained model with a chat template.
const std::string& chat_model() {
  static const std::string name = [] {
    trained();
    fs::copy(last_checkpoint(), Workshop::folder() / "chatty", fs::copy_options::recursive);
    std::ofstream(Workshop::folder() / "chatty/chat_template.jinja")
        << "{% for m in messages %}{{ m.role[0] }} {{ m.content }} {% endfor %}a ";
    return std::string("chatty");
  }();
  return name;
}

std::vector<std::string> chat_words(const std::vector<std::string>& more) {
  std::vector<std::string> words = {"chat",          chat_model(), "--max-new-tokens", "3",
                                    "--temperature", "0",          "--threads",        "1"};
  words.insert(words.end(), more.begin(), more.end());
  return words;
}

TEST(ChatCommand, AnswersEveryLine) {
  const auto both = run(chat_words({}), "Hi\nAnd\n");
  ASSERT_EQ(both.status, 0) << both.err;
  const auto one = run(chat_words({}), "Hi\n");
  EXPECT_TRUE(both.out.starts_with(one.out));
  EXPECT_GT(both.out.size(), one.out.size());
  EXPECT_EQ(both.err, "");
  const auto single = run({"generate", chat_model(), "Hi", "--chat", "--max-new-tokens", "3", "--temperature", "0",
                           "--threads", "1", "--quiet"});
  EXPECT_EQ(single.out, one.out) << single.err;
}

TEST(ChatCommand, FollowsItsCommands) {
  const auto one = run(chat_words({}), "Hi\n").out;
  EXPECT_EQ(run(chat_words({}), "Hi\n/reset\nHi\n/exit\nHi\n").out, one + one);
  const auto told = run(chat_words({"--system", "Be"}), "Hi\n").out;
  EXPECT_EQ(run(chat_words({}), "/system Be\nHi\n/reset\nHi\n/system\nHi\n").out, told + told + one);
  EXPECT_NE(run(chat_words({}), "Hi\n/speed\n/help\n").err.find("/system TEXT"), std::string::npos);
}

TEST(ChatCommand, SaysWhatItDoesNotUnderstandAndGoesOn) {
  const auto one = run(chat_words({}), "Hi\n").out;
  const auto outcome = run(chat_words({}), "/rest\nHi\n" + std::string(400, 'x') + "\n");
  EXPECT_EQ(outcome.out, one);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("found /rest; put a space before"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("expected a prompt of at most"), std::string::npos) << outcome.err;
}

TEST(ChatCommand, RefusesAModelWithoutATemplate) {
  expect_sentence(run({"chat", trained()}, "Hi\n"), 2, {"expected a chat template in trained", "--chat-template"});
  expect_sentence(run({"generate", trained(), "Hi", "--chat"}), 2, {"expected a chat template"});
  expect_sentence(run({"generate", trained(), "Hi", "--system", "x"}), 2, {"--chat"});
  expect_sentence(run(chat_words({"--chat-template", "nowhere.jinja"})), 2, {"nowhere.jinja"});
  std::ofstream(Workshop::folder() / "broken.jinja") << "{% for %}";
  expect_sentence(run(chat_words({"--chat-template", "broken.jinja"})), 2, {"[template] line 1"});
  expect_sentence(run(chat_words({"--bos", "maybe"})), 2, {"--bos"});
  expect_sentence(run({"chat", "nowhere"}), 2, {"nowhere"});
}

}  // namespace
}  // namespace prism
