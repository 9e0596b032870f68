#include "prism/data/chat/encode_chat.h"

#include <gtest/gtest.h>

#include "prism/formats/token_marks.h"
#include "tests/core/message_of.h"
#include "tests/data/byte_tokenizer.h"
#include "tests/data/chat/chat_templates.h"

namespace prism {
namespace {

/// A JSON tokenizer with these merges of "a b" into "ab", over all bytes, and an added token.
Tokenizer with_parts(const std::vector<std::pair<std::string, std::string>>& merges, const Json& normalizer,
                     const Json& added_flags = Json::object()) {
  Json vocabulary = Json::object();
  int id = 0;
  for (const uint8_t byte : bytes_in_alphabet_order()) vocabulary[byte_character(byte)] = id++;
  Json pairs = Json::array();
  for (const auto& [left, right] : merges) {
    vocabulary[left + right] = id++;
    pairs.push_back(left + " " + right);
  }
  Json token = {{"id", id},        {"content", "<end>"},  {"single_word", false}, {"lstrip", false},
                {"rstrip", false}, {"normalized", false}, {"special", true}};
  token.update(added_flags);
  const Json json = {
      {"version", "1.0"},
      {"added_tokens", Json::array({token})},
      {"normalizer", normalizer},
      {"pre_tokenizer",
       {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}}},
      {"post_processor", nullptr},
      {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
      {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", pairs}}}};
  return Tokenizer::from_json(json.dump(), "test tokenizer");
}

/// The tokens as text, those of the assistant in brackets.
std::vector<std::string> shown(const EncodedText& encoded, const Tokenizer& tokenizer) {
  std::vector<std::string> tokens;
  for (size_t i = 0; i < encoded.tokens.size(); ++i) {
    const std::string text(tokenizer.bytes(encoded.tokens[i]));
    tokens.push_back((encoded.marks[i] & kAssistantMark) != 0 ? "[" + text + "]" : text);
  }
  return tokens;
}

using Tokens = std::vector<std::string>;

TEST(EncodeChat, MarksTheTokensOfTheAssistantForBothKindsOfTemplates) {
  const auto tokenizer = byte_tokenizer();
  for (const char* text : {kMarkingTemplate, kPlainTemplate}) {
    const auto chat = render_conversation({two_answers()}, ChatTemplate(text, Json::object()));
    const auto encoded = encode_chat(chat, tokenizer);
    ASSERT_EQ(encoded.tokens.size(), chat.text.size());
    EXPECT_EQ(encoded.bytes, static_cast<int64_t>(chat.text.size()));
    //                              <user>Hi|<assistant>Yes|<user>Why|<assistant>No|
    const std::string expected = "x...................yyyy.....................yyy";
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_EQ(encoded.marks[i], expected[i] == 'x' ? kOpeningMark : expected[i] == 'y' ? kAssistantMark : 0) << i;
  }
}

TEST(EncodeChat, ParsesSpecialTokens) {
  const auto tokenizer = with_parts({}, nullptr);
  const auto encoded = encode_chat({"a<end>b<end>", {{6, 12}}}, tokenizer);
  EXPECT_EQ(shown(encoded, tokenizer), (Tokens{"a", "<end>", "[b]", "[<end>]"}));
}

TEST(EncodeChat, CountsATokenOfWhichAByteIsTheAssistants) {
  const auto tokenizer = with_parts({{"\u0120", "b"}, {"c", "d"}}, nullptr);  // " b" and "cd"
  const auto encoded = encode_chat({"a bxcd", {{2, 5}}}, tokenizer);
  EXPECT_EQ(shown(encoded, tokenizer), (Tokens{"a", "[ b]", "[x]", "[cd]"}));
}

TEST(EncodeChat, FollowsNormalizationFormC) {
  const auto tokenizer = with_parts({}, {{"type", "NFC"}});
  const std::string given = "e\xCC\x81|e\xCC\x81|", composed = "\xC3\xA9";
  const auto encoded = encode_chat({given, {{4, 8}}}, tokenizer);
  EXPECT_EQ(shown(encoded, tokenizer), (Tokens{"\xC3", "\xA9", "|", "[\xC3]", "[\xA9]", "[|]"}));
}

TEST(EncodeChat, FollowsWhiteSpaceThatSpecialTokensSwallow) {
  for (const char* side : {"lstrip", "rstrip"}) {
    const auto tokenizer = with_parts({}, nullptr, {{side, true}});
    const auto encoded = encode_chat({"a \n<end> \nbc", {{10, 11}}}, tokenizer);
    const auto tokens = shown(encoded, tokenizer);
    EXPECT_EQ(tokens[tokens.size() - 2], "[b]");
    EXPECT_EQ(tokens.size(), 6u);
  }
}

TEST(EncodeChat, RefusesTokenizersThatRewriteTheText) {
  const auto tokenizer = with_parts({}, {{"type", "Replace"}, {"pattern", {{"String", "b"}}}, {"content", "longer"}});
  EXPECT_REFUSED(encode_chat({"abc", {{1, 2}}}, tokenizer), "expected a tokenizer whose tokens spell the text");
}

TEST(TokenRanges, FollowASpaceThatTheTokenizerPutsBeforeTheText) {
  const auto tokenizer = with_parts({{"\u0120", "b"}}, nullptr);
  const auto ids = tokenizer.encode(" bc");  // as Llama 2 encodes "bc"
  const auto ranges = token_ranges("bc", ids, tokenizer);
  ASSERT_TRUE(ranges);
  EXPECT_EQ(*ranges, (std::vector<ByteRange>{{0, 1}, {1, 2}}));
  EXPECT_FALSE(token_ranges("xc", ids, tokenizer));
  EXPECT_FALSE(token_ranges("bcx", ids, tokenizer));
}

}  // namespace
}  // namespace prism
