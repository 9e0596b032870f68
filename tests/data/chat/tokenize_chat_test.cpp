#include "prism/data/chat/tokenize_chat.h"

#include <gtest/gtest.h>

#include "prism/core/files.h"
#include "prism/data/chat/model_template.h"
#include "prism/formats/token_marks.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/byte_tokenizer.h"
#include "tests/data/chat/chat_templates.h"

namespace prism {
namespace {

ChatTemplate template_of(const std::string& text) {
  Tokenizer tokenizer = byte_tokenizer();
  tokenizer.set_chat_template(text);
  return chat_template_of(tokenizer, "a test");
}

TEST(ChatTemplateOf, NeedsATemplate) {
  EXPECT_REFUSED(chat_template_of(byte_tokenizer(), "models/plain"), "expected a chat template in models/plain");
  EXPECT_REFUSED(template_of("{% for %}"), "[template] line 1");
}

class TokenizeChat : public testing::Test {
 protected:
  std::string put(const std::string& name, const std::string& bytes) const {
    write_file(folder_.path() / name, bytes);
    return (folder_.path() / name).string();
  }
  std::filesystem::path out() const { return folder_.path() / "out"; }
  TokenizeSummary run(const std::string& lines, TokenizeOptions options = {},
                      const std::string& text = kMarkingTemplate) const {
    return tokenize_chat({put("chats.jsonl", lines)}, {}, tokenizer_, template_of(text), out(), options);
  }
  /// The text of a split. Tokens of the assistant are in upper case, and / is before each conversation.
  std::string shown(const std::string& split) const {
    const TokenDataset data(out(), split);
    std::vector<int64_t> tokens(static_cast<size_t>(data.size()));
    std::vector<uint8_t> marks(tokens.size());
    data.read(0, tokens);
    data.read_marks(0, marks);
    std::string text;
    for (size_t i = 0; i < tokens.size(); ++i) {
      if ((marks[i] & kOpeningMark) != 0) text += '/';
      const std::string token(tokenizer_.bytes(static_cast<int32_t>(tokens[i])));
      for (const char byte : token)
        text += (marks[i] & kAssistantMark) != 0 ? static_cast<char>(std::toupper(byte)) : byte;
    }
    return text;
  }
  static std::string line(const Json& messages) { return Json({{"messages", messages}}).dump() + "\n"; }

  const Tokenizer tokenizer_ = byte_tokenizer();
  TemporaryFolder folder_;
};

TokenizeOptions no_validation() {
  TokenizeOptions options;
  options.valid_share = 0;
  return options;
}

TEST_F(TokenizeChat, WritesConversationsWithMarksAcrossShards) {
  auto options = no_validation();
  options.shard_tokens = 20;
  const Json second = Json::array({turn("user", "a"), turn("assistant", "b")});
  const auto summary = run(line(two_answers()) + "\n" + second.dump() + "\n", options);
  EXPECT_EQ(shown("train"), "/<user>Hi|<assistant>YES|<user>Why|<assistant>NO|/<user>a|<assistant>B|");
  EXPECT_EQ(summary.train_shards, 4);
  EXPECT_EQ(summary.info.train_documents, 2);
  EXPECT_EQ(summary.info.train_tokens, 69);
  EXPECT_EQ(summary.info.train_bytes, 69);
  EXPECT_EQ(summary.info.train_assistant_tokens, 4 + 3 + 2);
  EXPECT_EQ(summary.info.valid_assistant_tokens, 0);
  EXPECT_EQ(TokenDataset(out(), "train").info()->train_assistant_tokens, 9);
}

TEST_F(TokenizeChat, GivesTheTemplateTheTokenizersSpecialTokens) {
  run(line(Json::array({turn("user", "a"), turn("assistant", "b")})), no_validation(),
      "{{ bos_token }}{% for m in messages %}{% generation %}{{ m.content }}{{ eos_token }}{% endgeneration %}"
      "{% endfor %}");
  EXPECT_EQ(shown("train"), "/<|endoftext|>A<|ENDOFTEXT|>B<|ENDOFTEXT|>");
  EXPECT_EQ(TokenDataset(out(), "train").size(), 5);
}

TEST_F(TokenizeChat, SplitsByConversationAndWritesTheSameWhateverTheThreads) {
  std::string lines;
  for (int i = 0; i < 300; ++i)
    lines += line(Json::array({turn("user", std::to_string(i)), turn("assistant", std::string(i % 50 + 1, 'a'))}));
  TokenizeOptions options;
  options.valid_share = 0.2;
  options.force = true;
  options.threads = 1;
  const auto first = run(lines, options);
  const std::string train = shown("train"), valid = shown("valid");
  EXPECT_EQ(first.info.train_documents + first.info.valid_documents, 300);
  EXPECT_GT(first.info.valid_documents, 20);
  EXPECT_EQ(std::count(valid.begin(), valid.end(), '/'), first.info.valid_documents);
  EXPECT_EQ(std::count(valid.begin(), valid.end(), 'A') + first.info.valid_documents,
            first.info.valid_assistant_tokens);
  options.threads = 3;
  run(lines, options);
  EXPECT_EQ(shown("train"), train);
  EXPECT_EQ(shown("valid"), valid);
}

TEST_F(TokenizeChat, LeavesNoMarksWhenTextReplacesConversations) {
  run(line(two_answers()), no_validation());
  auto options = no_validation();
  options.force = true;
  tokenize({put("a.txt", "text")}, {}, tokenizer_, out(), options);
  EXPECT_FALSE(is_there(out() / "train_000000.marks"));
  EXPECT_FALSE(TokenDataset(out(), "train").has_marks());
  EXPECT_EQ(read_file(out() / kDatasetInfoName).find("assistant"), std::string::npos);
}

TEST_F(TokenizeChat, SearchesFoldersForJsonlAlone) {
  put("notes.txt", "no conversation");
  put("chats.jsonl", line(two_answers()));
  const auto summary =
      tokenize_chat({folder_.path().string()}, {}, tokenizer_, template_of(kPlainTemplate), out(), no_validation());
  EXPECT_EQ(summary.info.train_documents, 1);
  EXPECT_EQ(summary.skipped_files, 1);
}

TEST_F(TokenizeChat, RefusesWrongLinesWithTheirPlace) {
  const std::string good = line(two_answers());
  EXPECT_REFUSED(run(good + "\n{\"messages\": \n"), "chats.jsonl:3: expected JSON in the line; found a text that ends");
  EXPECT_REFUSED(run(good + "7\n"), "chats.jsonl:2: expected an object with \"messages\", or a list of messages");
  EXPECT_REFUSED(run(good + std::string(100'000, '[') + std::string(100'000, ']') + "\n"),
                 "chats.jsonl:2: expected JSON in the line; found more than 100 levels of nesting");
  EXPECT_REFUSED(run(good + "[{\"role\": \"user\"}]\n"), "chats.jsonl:2: message 1: expected a \"content\"");
  EXPECT_REFUSED(run("[]\n"), "chats.jsonl:1: expected at least one message");
  EXPECT_REFUSED(run(line(Json::array({turn("user", "a")}))), "chats.jsonl:1: expected text of the assistant");
  EXPECT_REFUSED(run("\n"), "expected a conversation to train on; found none");
  EXPECT_REFUSED(run(good, {}, "\n{{ raise_exception('no') }}"),
                 "chats.jsonl:1: the template, line 2: expected messages that the template accepts");
  EXPECT_FALSE(is_there(out()));
}

}  // namespace
}  // namespace prism
