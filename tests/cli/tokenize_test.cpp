// Runs prism tokenize --label and --chat as a user does.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/cli/commands.h"

namespace prism {
namespace {

class TokenizeLabelled : public testing::Test {
 protected:
  void SetUp() override {
    std::string text, rows;
    for (int i = 0; i < 40; ++i) text += "The keeper lit the lamp; the lamp was bright.\n";
    for (int i = 0; i < 200; ++i)
      rows += std::to_string(1 + i % 2) + ",\"Row " + std::to_string(i) + "\",\"Lamp, lit\"\n";
    write_text(path("text.txt"), text);
    write_text(path("train.csv"), rows);
    write_text(path("test.csv"), "1,Row 3,\"Lamp, lit\"\n2,Other,Lamp\n");
    write_text(path("classes.txt"), "dark\nbright\n");
    ASSERT_EQ(
        run_prism({"tokenizer", "train", "text.txt", "--vocab-size", "275", "--out", "made"}, folder_.path()).status,
        0);
  }
  std::filesystem::path path(const std::string& name) const { return folder_.path() / name; }
  Outcome tokenize(std::vector<std::string> words, const std::string& input = "") const {
    words.insert(words.begin(), "tokenize");
    words.insert(words.end(), {"--tokenizer", "made", "--out", "data"});
    return run_prism(words, folder_.path(), input);
  }

  TemporaryFolder folder_;
};

TEST_F(TokenizeLabelled, PrintsSplitsAndClasses) {
  const auto outcome = tokenize({"train.csv", "--label", "1", "--text-fields", "2,3", "--classes", "classes.txt",
                                 "--test", "test.csv", "--valid-share", "0.1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  EXPECT_NE(outcome.out.find("2 classes: dark and bright"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("text from columns 2 and 3"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.err.find("note: 1 training examples left out"), std::string::npos) << outcome.err;
  const auto data = nlohmann::json::parse(read_text(path("data/data.json")));
  EXPECT_EQ(data["train_examples"].get<int>() + data["valid_examples"].get<int>(), 199);
  EXPECT_EQ(data["test_examples"], 2);
}

TEST_F(TokenizeLabelled, ReadsStandardInputAndPrintsJson) {
  const auto outcome =
      tokenize({"-", "--format", "jsonl", "--label", "kind", "--words", "--valid-share", "0", "--json"},
               "{\"kind\": \"a\", \"text\": \"X.\"}\n{\"kind\": \"b\", \"text\": \"Y\"}\n");
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["classes"], (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(json["text_fields"], std::vector<std::string>{"text"});
  EXPECT_EQ(json["train"]["examples"], 2);
  EXPECT_NE(outcome.err.find("no examples for validation"), std::string::npos) << outcome.err;
}

TEST_F(TokenizeLabelled, WithWrongInputGetsASentence) {
  expect_sentence(tokenize({"train.csv", "--label", "4"}), 2,
                  {"train.csv, line 1", "expected a column 4", "3 columns"});
  expect_sentence(tokenize({"train.csv", "--label", "kind"}), 2, {"expected a column \"kind\"", "found 1, Row 0"});
  expect_sentence(tokenize({"train.csv", "--label", "1", "--classes", "none.txt"}), 2, {"none.txt"});
  expect_sentence(tokenize({"train.txt", "--label", "1"}), 2, {"found no file train.txt"});
  expect_sentence(tokenize({"text.txt", "--label", "1"}), 2, {"expected rows in a .csv or .jsonl file", "text.txt"});
  expect_sentence(tokenize({"train.csv", "--label", "1", "--separator", "x"}), 2,
                  {"expected only one of --separator and --label; found both"});
  expect_sentence(tokenize({"train.csv", "--words"}), 2, {"expected --label with --words; found none"});
  EXPECT_FALSE(std::filesystem::exists(path("data")));
}

class TokenizeChats : public TokenizeLabelled {
 protected:
  void SetUp() override {
    TokenizeLabelled::SetUp();
    const std::string question = R"({"role": "user", "content": "lit"})";
    answer_ = R"({"role": "assistant", "content": "the lamp"})";
    for (int i = 0; i < 40; ++i) chats_ += R"({"messages": [)" + question + ", " + answer_ + "]}\n";
    write_text(path("chats.jsonl"), chats_);
    write_text(path("chat.jinja"),
               "{% for m in messages %}<{{ m.role }}>{{ m.content }};{% endfor %}"
               "{% if add_generation_prompt %}<assistant>{% endif %}");
    write_text(path("marks.jinja"),
               "{% for m in messages %}{{ m.role }} {% generation %}{{ m.content }}{% endgeneration %}{% endfor %}");
  }
  std::string chats_, answer_;
};

TEST_F(TokenizeChats, PrintsHowManyTokensAreTheAssistants) {
  const auto outcome = tokenize({"chats.jsonl", "--chat", "--chat-template", "chat.jinja", "--valid-share", "0.1"});
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto data = nlohmann::json::parse(read_text(path("data/data.json")));
  const int64_t assistant =
      data["train_assistant_tokens"].get<int64_t>() + data["valid_assistant_tokens"].get<int64_t>();
  const int64_t all = data["train_tokens"].get<int64_t>() + data["valid_tokens"].get<int64_t>();
  EXPECT_GT(assistant, 0);
  EXPECT_LT(assistant, all);
  EXPECT_NE(outcome.out.find(std::to_string(assistant) + " of " + std::to_string(all) + " tokens ("), std::string::npos)
      << outcome.out;
  EXPECT_TRUE(std::filesystem::exists(path("data/train_000000.marks")));
  EXPECT_TRUE(std::filesystem::exists(path("data/valid_000000.marks")));
}

TEST_F(TokenizeChats, ReadsStandardInputAndPrintsJson) {
  const auto outcome =
      tokenize({"-", "--chat", "--chat-template", "marks.jinja", "--valid-share", "0", "--json"}, chats_);
  ASSERT_EQ(outcome.status, 0) << outcome.err;
  const auto json = nlohmann::json::parse(outcome.out);
  EXPECT_EQ(json["train"]["documents"], 40);
  EXPECT_GT(json["train"]["assistant_tokens"], 0);
  EXPECT_EQ(json["valid"]["assistant_tokens"], 0);
}

TEST_F(TokenizeChats, MayReplaceBytesThatAreNotUtf8) {
  std::vector<std::string> words = {"chats.jsonl", "--chat", "--chat-template", "chat.jinja"};
  write_text(path("chats.jsonl"), chats_ + "[{\"role\": \"user\", \"content\": \"lit \xFF\"}, " + answer_ + "]\n");
  expect_sentence(tokenize(words), 2, {"chats.jsonl: expected text in UTF-8; found byte 0xFF", "(line 41)"});
  EXPECT_FALSE(std::filesystem::exists(path("data")));
  words.insert(words.end(), {"--invalid-utf8", "replace"});
  const auto outcome = tokenize(words);
  EXPECT_EQ(outcome.status, 0) << outcome.err;
}

TEST_F(TokenizeChats, WithWrongInputGetsASentence) {
  const std::vector<std::string> chat = {"chats.jsonl", "--chat", "--chat-template", "chat.jinja"};
  const auto with_line = [&](const std::string& line) {
    write_text(path("chats.jsonl"), chats_ + line + "\n");
    return tokenize(chat);
  };
  expect_sentence(with_line("{\"messages\": "), 2,
                  {"chats.jsonl:41: expected JSON in the line; found a text that ends"});
  expect_sentence(with_line("[{\"role\": \"user\"}]"), 2, {"chats.jsonl:41: message 1: expected a \"content\""});
  expect_sentence(with_line("{\"messages\": []}"), 2, {"chats.jsonl:41: expected at least one message"});
  expect_sentence(with_line("[{\"role\": \"user\", \"content\": \"lit\"}]"), 2,
                  {"chats.jsonl:41: expected text of the assistant"});
  expect_sentence(with_line("[" + answer_ + "]"), 2, {"expected a message before the assistant's first"});
  expect_sentence(tokenize({"chats.jsonl", "--chat"}), 2, {"expected a chat template in made"});
  expect_sentence(tokenize({"chats.jsonl", "--chat", "--chat-template", "none.jinja"}), 2, {"none.jinja"});
  expect_sentence(tokenize({"chats.jsonl", "--chat-template", "chat.jinja"}), 2,
                  {"expected --chat with --chat-template; found none"});
  expect_sentence(tokenize({"chats.jsonl", "--chat", "--separator", "x"}), 2, {"--separator", "--chat", "found both"});
  EXPECT_FALSE(std::filesystem::exists(path("data")));
}

}  // namespace
}  // namespace prism
