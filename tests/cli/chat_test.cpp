// prism chat and prism generate --chat.
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <stdexcept>
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
  EXPECT_EQ(run(chat_words({"--quiet"}), "Hi\nAnd\n").err, "");
  const auto single = run({"generate", chat_model(), "Hi", "--chat", "--max-new-tokens", "3", "--temperature", "0",
                           "--threads", "1", "--quiet"});
  EXPECT_EQ(single.out, one.out) << single.err;
}

TEST(ChatCommand, FollowsItsCommands) {
  const auto one = run(chat_words({}), "Hi\n").out;
  EXPECT_EQ(run(chat_words({}), "Hi\n/reset\nHi\n/exit\nHi\n").out, one + one);
  const auto told = run(chat_words({"--system", "Be"}), "Hi\n").out;
  EXPECT_EQ(run(chat_words({}), "/system Be\nHi\n/reset\nHi\n/system\nHi\n").out, told + told + one);
  EXPECT_CONTAINS(run(chat_words({}), "Hi\n/speed\n").err, "tokens/s; new: ");
  EXPECT_CONTAINS(run(chat_words({}), "/speed\nHi\n").err, "no answer yet\n");
  EXPECT_CONTAINS(run(chat_words({}), "/help\n").err, "commands: /reset, /system TEXT, ");
}

TEST(ChatCommand, JoinsLinesThatEndInABackslash) {
  std::ofstream(Workshop::folder() / "lines.jinja") << "{{ messages[-1].content | replace('\\n', ' ') }}";
  const std::vector<std::string> one_line = {"--chat-template", "lines.jinja"};
  const auto joined = run(chat_words(one_line), "The\\\nriver\n");
  EXPECT_EQ(joined.status, 0) << joined.err;
  EXPECT_EQ(joined.out, run(chat_words(one_line), "The river\n").out);
  EXPECT_EQ(run(chat_words(one_line), "The river\\").out, run(chat_words(one_line), "The river\\\n\n").out)
      << "the end of the input also ends a message";
}

TEST(ChatCommand, SaysWhatCutAnAnswer) {
  // The model has a context of 32 tokens and does not stop.
  const auto words = [](const std::string& tokens, const std::vector<std::string>& more) {
    std::vector<std::string> all = {"chat",          chat_model(), "--max-new-tokens", tokens, "--ignore-eos",
                                    "--temperature", "0",          "--threads",        "1"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  };
  EXPECT_CONTAINS(run(words("3", {}), "Hi\n").err,
                  "note: the answer was cut at 3 tokens; --max-new-tokens N allows more\n");
  const auto full = run(words("0", {}), "Hi\nHi\nHi\nHi\nHi\nHi\n/reset\nHi\n");
  EXPECT_EQ(full.status, 2) << full.err;
  EXPECT_CONTAINS(full.err, "because the context is full; /reset makes room\n");
  EXPECT_CONTAINS(full.err, "give --truncate-prompt, or /reset.\n");
  const auto one = run(words("0", {}), "Hi\n").out;
  EXPECT_TRUE(full.out.starts_with(one) && full.out.ends_with(one)) << full.out;
  EXPECT_CONTAINS(run(words("0", {"--truncate-prompt"}), "Hi\nHi\n").err, "note: left out ");
  EXPECT_CONTAINS(run(words("40", {"--slide"}), "Hi\n").err, "note: the context was full ");
}

TEST(ChatCommand, RefusesAMessageThatIsNotUtf8AndGoesOn) {
  const auto outcome = run(chat_words({}), "\xFF\nHi\n");
  EXPECT_EQ(outcome.status, 2);
  EXPECT_CONTAINS(outcome.err, "[chat] ");
  EXPECT_CONTAINS(outcome.err, "UTF-8");
  EXPECT_EQ(outcome.out, run(chat_words({}), "Hi\n").out);
}

/// A conversation whose messages the test writes one by one.
class Conversation {
 public:
  explicit Conversation(const std::vector<std::string>& more = {}) {
    if (::pipe(ends_) != 0) throw std::runtime_error("no pipe");
    const auto model = (Workshop::folder() / chat_model()).string();
    std::vector<std::string> words = {"chat",      model, "--max-new-tokens", "1000000", "--ignore-eos", "--slide",
                                      "--threads", "1",   "--truncate-prompt"};
    words.insert(words.end(), more.begin(), more.end());
    child_ = start_prism(words, own_.path(), [&] {
      ::dup2(ends_[0], STDIN_FILENO);
      ::close(ends_[1]);
    });
    ::close(ends_[0]);
  }
  ~Conversation() {
    if (!is_open_) return;
    ::kill(child_, SIGKILL);
    finish();
  }
  Conversation(const Conversation&) = delete;
  Conversation& operator=(const Conversation&) = delete;

  void write(const std::string& text) const {
    ASSERT_EQ(::write(ends_[1], text.data(), text.size()), std::ssize(text));
  }
  pid_t child() const { return child_; }
  /// Waits until more of the answers is there than `bytes`.
  bool wait_for_output(uintmax_t bytes) const {
    return wait_until([&] { return fs::exists(output()) && fs::file_size(output()) > bytes; });
  }
  uintmax_t output_bytes() const { return fs::file_size(output()); }
  /// Waits until an answer that a signal stopped has ended.
  bool wait_until_interrupted() const {
    const auto errors = [&] { return read_text(own_.path() / "stderr.txt"); };
    const auto before = errors().size();
    write("/speed\n");  // is followed after the answer
    return wait_until([&] { return errors().find("; interrupted.", before) != std::string::npos; });
  }
  /// Ends the input, and waits for the program.
  Outcome finish() {
    ::close(ends_[1]);
    is_open_ = false;
    return wait_for(child_, own_.path());
  }
  /// Waits for the program, whose input stays open.
  Outcome wait() {
    is_open_ = false;
    auto outcome = wait_for(child_, own_.path());
    ::close(ends_[1]);
    return outcome;
  }

 private:
  fs::path output() const { return own_.path() / "stdout.txt"; }

  TemporaryFolder own_;
  int ends_[2];
  pid_t child_ = -1;
  bool is_open_ = true;
};

TEST(ChatCommand, StopsTheAnswerAtCtrlCAndNotTheConversation) {
  Conversation conversation;
  conversation.write("Hi\n");
  ASSERT_TRUE(conversation.wait_for_output(0));
  ::kill(conversation.child(), SIGINT);
  ASSERT_TRUE(conversation.wait_until_interrupted());
  const auto first = conversation.output_bytes();
  conversation.write("And\n");
  ASSERT_TRUE(conversation.wait_for_output(first)) << "the next message is answered";
  ::kill(conversation.child(), SIGINT);
  ASSERT_TRUE(conversation.wait_until_interrupted());
  const auto outcome = conversation.finish();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST(ChatCommand, EndsAtCtrlCBetweenAnswersAndAtATermination) {
  const auto kept = Workshop::folder() / "quit.cache";
  Conversation waits({"--prompt-cache", kept.string()});
  waits.write("Hi\n");
  ASSERT_TRUE(waits.wait_for_output(0));
  ::kill(waits.child(), SIGINT);
  ASSERT_TRUE(waits.wait_until_interrupted());
  ::kill(waits.child(), SIGINT);
  const auto outcome = waits.wait();
  EXPECT_EQ(outcome.status, 0) << outcome.err;
  // Not if the context slid until the signal came.
  EXPECT_NE(fs::exists(kept), outcome.err.find("quit.cache is not written") != std::string::npos) << outcome.err;
  fs::remove(kept);
  Conversation answers;
  answers.write("Hi\nHi\n");
  ASSERT_TRUE(answers.wait_for_output(0));
  ::kill(answers.child(), SIGTERM);
  EXPECT_EQ(answers.finish().status, 1);
  Conversation reads;
  reads.write("Hi\n");
  ASSERT_TRUE(reads.wait_for_output(0));
  ::kill(reads.child(), SIGINT);
  ASSERT_TRUE(reads.wait_until_interrupted());
  reads.write("half a message");
  ::kill(reads.child(), SIGTERM);
  EXPECT_EQ(reads.wait().status, 1);
}

TEST(ChatCommand, SaysWhatItDoesNotUnderstandAndGoesOn) {
  const auto one = run(chat_words({}), "Hi\n").out;
  const auto outcome = run(chat_words({}), "/rest\nHi\n" + std::string(400, 'x') + "\n");
  EXPECT_EQ(outcome.out, one);
  EXPECT_EQ(outcome.status, 2);
  EXPECT_NE(outcome.err.find("found /rest; put a space before"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("expected a conversation of at most 29 tokens in "), std::string::npos) << outcome.err;
}

TEST(ChatCommand, RefusesAModelWithoutATemplate) {
  expect_sentence(run({"chat", trained()}, "Hi\n"), 2, {"expected a chat template in trained", "--chat-template"});
  expect_sentence(run({"generate", trained(), "Hi", "--chat"}), 2, {"expected a chat template"});
  expect_sentence(run({"generate", trained(), "Hi", "--system", "x"}), 2, {"--chat"});
  expect_sentence(run({"generate", chat_model(), "--chat"}), 2, {"expected a message with --chat; found none"});
  expect_sentence(run(chat_words({"--chat-template", "nowhere.jinja"})), 2, {"nowhere.jinja"});
  std::ofstream(Workshop::folder() / "broken.jinja") << "{% for %}";
  expect_sentence(run(chat_words({"--chat-template", "broken.jinja"})), 2, {"[template] line 1"});
  expect_sentence(run(chat_words({"--bos", "maybe"})), 2, {"--bos"});
  expect_sentence(run({"chat", "nowhere"}), 2, {"nowhere"});
}

}  // namespace
}  // namespace prism
