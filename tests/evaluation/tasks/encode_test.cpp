// Queries as tokens, against lm-evaluation-harness.
#include "prism/evaluation/tasks/encode.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/evaluation/tasks/task_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

TEST(EncodeQuery, DividesContextAndContinuationAsTheHarnessDoes) {
  const auto tokenizer = tiny_tokenizer();
  const auto text_of_code_points = [](const Json& codes) {
    std::string text;
    for (const auto& code : codes) {
      const auto c = code.get<uint32_t>();
      if (c < 0x80) {
        text += static_cast<char>(c);
      } else if (c < 0x800) {
        text += {static_cast<char>(0xC0 | c >> 6), static_cast<char>(0x80 | (c & 0x3F))};
      } else {
        text += {static_cast<char>(0xE0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3F)),
                 static_cast<char>(0x80 | (c & 0x3F))};
      }
    }
    return text;
  };
  for (const auto& each : harness()["pairs"]) {
    const auto context = each["context"].get<std::string>();
    const auto query = encode_query(tokenizer, {context, each["continuation"].get<std::string>()}, 100);
    ASSERT_EQ(query.windows.size(), 1u);
    const auto [tokens, from, unread, budget, decodes] = query.request(0, {});
    const auto middle = tokens.begin() + from;
    const auto before = tokenizer.decode(std::vector<int32_t>(tokens.begin(), middle));
    EXPECT_EQ(tokenizer.decode(std::vector<int32_t>(middle, tokens.end())),
              text_of_code_points(each["continuation_tokens"]));
    EXPECT_EQ(before, context.empty() ? "<|endoftext|>" : text_of_code_points(each["context_tokens"]));
  }
}

TEST(EncodeQuery, OpensATextWithoutContextWithTheTokenizersOwnToken) {
  const auto opening = [](const char* config) {
    const TemporaryFolder folder;
    write_file(folder.path() / "tokenizer.model", read_file(fixture_path("scored.model")));
    write_file(folder.path() / "tokenizer_config.json", config);
    write_file(folder.path() / "generation_config.json", R"({"bos_token_id": 1, "eos_token_id": [7, 2]})");
    return encode_query(Tokenizer::load(folder.path()), {"", " a"}, 100).tokens[0];
  };
  EXPECT_EQ(opening(R"({"bos_token": "<s>", "eos_token": "</s>"})"), 1);
  EXPECT_EQ(opening(R"({"bos_token": null, "eos_token": "</s>"})"), 2) << "not that of generation_config.json";
}

TEST(EncodeQuery, KeepsTheEndOfWhatIsTooLong) {
  const auto tokenizer = tiny_tokenizer();
  const auto query = encode_query(tokenizer, {"abcdefgh", "xyz"}, 6);
  EXPECT_EQ(query.cut, 4);
  EXPECT_EQ(tokenizer.decode(query.request(0, {}).tokens), "efghxyz");
  EXPECT_EQ(query.request(0, {}).scored_from, 4);
  const auto longer = encode_query(tokenizer, {"ab", "uvwxyz"}, 3);
  EXPECT_EQ(tokenizer.decode(longer.request(0, {}).tokens), "wxyz");
  EXPECT_EQ(longer.request(0, {}).scored_from, 1) << "the first token that is left has nothing before it";
  EXPECT_REFUSED(encode_query(tokenizer, {"ab", ""}, 9), "a continuation of at least one token");
  EXPECT_REFUSED(encode_query(tiny_tokenizer(/*end_of_text=*/false), {"", "a"}, 9), "a token that opens or ends texts");
}

TEST(EncodeQuery, ReadsWholeTextsInTheHarnesssWindows) {
  const auto tokenizer = tiny_tokenizer();
  for (const auto& each : harness()["windows"]) {
    std::string text;
    for (int64_t i = 1; i <= each["tokens"].get<int64_t>(); ++i) text += static_cast<char>('a' + i);
    const auto found = encode_rolling(tokenizer, text, each["context"].get<int64_t>());
    ASSERT_EQ(found.windows.size(), each["windows"].size()) << text;
    for (size_t i = 0; i < found.windows.size(); ++i) {
      const auto request = found.request(i, {});
      Json ids = Json::array();  // 0 opens the text, the others are letters
      for (const int32_t id : request.tokens) ids.push_back(id == 258 ? 0 : tokenizer.decode(std::vector{id})[0] - 'a');
      const auto& window = each["windows"][i];
      Json expected = window["context"];
      EXPECT_EQ(request.scored_from, std::ssize(window["context"]));
      for (const auto& id : window["continuation"]) expected.push_back(id);
      EXPECT_EQ(ids, expected) << text << i;
    }
  }
}

TEST(EncodeQuery, PredictsTheSecondHalvesOfWindows) {
  const auto tokenizer = tiny_tokenizer();
  std::string text(1100, 'a');
  text.replace(512, 13, "<|endoftext|>");
  const auto found = encode_halves(tokenizer, text);
  ASSERT_EQ(found.windows.size(), 2u) << "a rest of 76 is left out";
  EXPECT_EQ(found.request(1, {}).tokens.size(), 512u);
  EXPECT_EQ(found.request(1, {}).tokens[0], '<') << "special tokens stay text";
  for (const size_t i : {0, 1}) EXPECT_EQ(found.request(i, {}).predictions(), 255);
  EXPECT_REFUSED(encode_halves(tokenizer, "short"), "at least 512 tokens; found 5");
}

TEST(EncodeQuery, ReadsDocumentsInPiecesAndKeepsOneCopy) {
  const auto tokenizer = tiny_tokenizer();
  std::string text;
  for (int i = 0; i < 300000; ++i) text += "other ";
  const auto found = encode_windows(tokenizer, text, 100, 1);
  const auto whole = tokenizer.encode(text, SpecialTokens::as_text);
  ASSERT_EQ(found.tokens.size(), whole.size() + 1);
  EXPECT_EQ(found.tokens[0], 258);
  EXPECT_TRUE(std::equal(whole.begin(), whole.end(), found.tokens.begin() + 1));
  ASSERT_EQ(found.windows.size(), whole.size() - 99);
  const auto last = found.request(found.windows.size() - 1, {});
  EXPECT_EQ(last.tokens, std::vector<int32_t>(whole.end() - 101, whole.end()));
  EXPECT_EQ(last.predictions(), 1);
}

TEST(EncodeQuery, BeginsAWindowWithTheWordThatItOpensIn) {
  const auto tokenizer = tiny_tokenizer(/*end_of_text=*/true, /*merges=*/false);
  const auto found = encode_rolling(tokenizer, "ab cdefgh", 5);
  ASSERT_EQ(found.windows.size(), 2u);
  const auto plain = found.request(1, {}), opened = found.request(1, tokenizer.word_starts());
  EXPECT_EQ(tokenizer.decode(plain.tokens), "cdefgh");
  EXPECT_EQ(plain.unread, 0);
  EXPECT_EQ(tokenizer.decode(opened.tokens), " cdefgh");
  EXPECT_EQ(opened.unread, 1);
  EXPECT_EQ(opened.predictions(), plain.predictions());
}

}  // namespace
}  // namespace prism
