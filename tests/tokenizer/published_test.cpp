// Tests of published tokenizers. Their files are too large to commit and are found through PRISM_DATA.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>

#include "prism/tokenizer/tokenizer.h"
#include "tests/tokenizer/published_cases.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

class PublishedTokenizer : public testing::Test {
 protected:
  void SetUp() override {
    if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tokenizers/";
    folder_ = *data_folder() + "/tokenizers/";
  }
  std::string read(const std::string& name) const { return read_xz(folder_ + name + "/tokenizer.json.xz"); }
  void expect_cases(const Tokenizer& tokenizer, const std::string& name) const {
    expect_published_cases(tokenizer, folder_, name);
  }

  std::string folder_;
};

TEST_F(PublishedTokenizer, Gpt2GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("gpt2"), "gpt2");
  EXPECT_EQ(tokenizer.vocab_size(), 50257);
  EXPECT_EQ(tokenizer.merge_count(), 50000);
  EXPECT_EQ(tokenizer.special_ids().opening, 50256);
  expect_cases(tokenizer, "gpt-2");
}

TEST_F(PublishedTokenizer, Llama3GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("llama3"), "llama3");
  EXPECT_EQ(tokenizer.vocab_size(), 128256);
  EXPECT_EQ(tokenizer.special_ids().opening, 128001);
  expect_cases(tokenizer, "llama-bpe");
}

TEST_F(PublishedTokenizer, Qwen2GivesTheExactIdsOfAllInputs) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("qwen2.5"), "qwen2.5");
  EXPECT_EQ(tokenizer.vocab_size(), 151665);
  expect_cases(tokenizer, "qwen2");
}

TEST_F(PublishedTokenizer, Llama2GivesTheExactIdsOfAllInputsFromEitherFile) {
  const Tokenizer tokenizer = Tokenizer::load(folder_ + "llama2/tokenizer.model");
  EXPECT_EQ(tokenizer.vocab_size(), 32000);
  EXPECT_EQ(tokenizer.special_ids(), (SpecialIds{.opening = 1, .ends = {2}}));
  EXPECT_TRUE(tokenizer.strips_first_space());
  expect_cases(tokenizer, "llama-spm");
  const Tokenizer same = Tokenizer::load(*data_folder() + "/tinyllamas/stories15M/tokenizer.bin");
  EXPECT_EQ(same.fingerprint(), tokenizer.fingerprint());
  EXPECT_EQ(same.special_ids(), (SpecialIds{.opening = 1, .ends = {2, 1}, .opens_prompts = true}));
}

/// llama2.c's algorithm, as it is written there: repeatedly the neighbours whose joined text has the highest score.
std::vector<int32_t> merge_by_definition(const std::vector<std::pair<std::string, float>>& tokens, std::string text) {
  std::map<std::string, size_t> ids;
  for (size_t id = 259; id < tokens.size(); ++id) ids.emplace(tokens[id].first, id);
  text = " " + text;
  std::vector<size_t> parts;
  for (size_t at = 0; at < text.size();) {
    size_t end = at + 1;
    while (end < text.size() && (static_cast<uint8_t>(text[end]) & 0xC0) == 0x80) ++end;
    const auto found = ids.find(text.substr(at, end - at));
    if (found != ids.end()) {
      parts.push_back(found->second);
    } else {
      for (; at < end; ++at) parts.push_back(size_t{3} + static_cast<uint8_t>(text[at]));
    }
    at = end;
  }
  while (true) {
    size_t best = parts.size(), best_id = 0;
    float best_score = -1e10f;
    for (size_t i = 0; i + 1 < parts.size(); ++i) {
      const auto joined = ids.find(tokens[parts[i]].first + tokens[parts[i + 1]].first);
      if (joined == ids.end() || tokens[joined->second].second <= best_score) continue;
      best = i, best_id = joined->second, best_score = tokens[best_id].second;
    }
    if (best == parts.size()) return {parts.begin(), parts.end()};
    parts[best] = best_id;
    parts.erase(parts.begin() + static_cast<std::ptrdiff_t>(best) + 1);
  }
}

TEST_F(PublishedTokenizer, Stories260KGivesTheIdsOfLlama2c) {
  const std::string folder = *data_folder() + "/tinyllamas/stories260K/";
  const Tokenizer tokenizer = Tokenizer::load(folder + "tok512.bin");
  EXPECT_EQ(tokenizer.vocab_size(), 512);
  const std::string table = read_file(folder + "tok512.bin");
  std::vector<std::pair<std::string, float>> tokens;
  for (size_t at = 4; at < table.size();) {
    float score = 0;
    int32_t length = 0;
    std::memcpy(&score, table.data() + at, 4);
    std::memcpy(&length, table.data() + at + 4, 4);
    tokens.emplace_back(table.substr(at + 8, static_cast<size_t>(length)), score);
    at += 8 + static_cast<size_t>(length);
  }
  for (const std::string& text :
       {read_file(folder + "expected_greedy_200.txt"), std::string("été 灯 <s>"), std::string("  a b ")}) {
    const auto ids = tokenizer.encode(text, SpecialTokens::as_text);
    EXPECT_EQ(ids, merge_by_definition(tokens, text));
    EXPECT_EQ(tokenizer.decode(ids), text);
  }
}

TEST_F(PublishedTokenizer, Gpt2TokensEncodeToThemselvesAndDecodeToTheirBytes) {
  const Tokenizer tokenizer = Tokenizer::from_json(read("gpt2"), "gpt2");
  int64_t themselves = 0;
  for (int32_t id = 0; id < tokenizer.vocab_size(); ++id) {
    const std::string bytes(tokenizer.bytes(id));
    const auto ids = tokenizer.encode(bytes);
    EXPECT_EQ(tokenizer.decode(ids), bytes);
    themselves += ids == std::vector{id};
  }
  // The others end inside a character or are runs that the pattern splits.
  EXPECT_GT(themselves, 49000);
}

}  // namespace
}  // namespace prism
