#include "prism/tokenizer/sources/ggml_vocabulary.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/tokenizer.h"
#include "tests/core/message_of.h"
#include "tests/tokenizer/ggml_vocabularies.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

Tokenizer from_ggml(const GgmlVocabulary& vocabulary) {
  return Tokenizer::from_ggml(vocabulary, "some.gguf");
}

TEST(GgmlVocabulary, GivesTheIdsOfTheTokenizerJsonItWasMadeFrom) {
  const struct { const char *file, *pre; } rows[] = {{"llama3.json", "llama-bpe"}, {"llama3.json", "llama-v3"}};
  for (const auto& [file, pre] : rows) {
    const Tokenizer tokenizer = from_ggml(ggml_fixture(file, pre));
    const Tokenizer original = Tokenizer::load(fixture_path(file));
    EXPECT_EQ(tokenizer.fingerprint(), original.fingerprint());
    for (const auto& row : fixture_json("expected.json")) {
      if (row["tokenizer"] != "llama3" || !row["parse_special"].get<bool>()) continue;
      EXPECT_EQ(tokenizer.encode(row["text"].get<std::string>()), row["ids"].get<std::vector<int32_t>>());
    }
  }
}

TEST(GgmlVocabulary, SplitsByTheNameOfThePretokenizer) {
  const auto pattern = [](const char* pre) { return from_ggml(ggml_fixture("llama3.json", pre)).pattern(); };
  EXPECT_EQ(pattern("gpt-2"), Tokenizer::load(fixture_path("gpt2.json")).pattern());
  EXPECT_EQ(pattern("smollm"), "single digits then " + pattern("gpt-2"));
  EXPECT_EQ(pattern(""), pattern("default"));
  EXPECT_NE(pattern("qwen2"), pattern("llama-bpe"));
  EXPECT_REFUSED(pattern("no-such"), "found \"no-such\"; choose a file with one of: default, gpt-2,");
}

TEST(GgmlVocabulary, KeepsTokensWholeByTheNameOfThePretokenizer) {
  const auto keeps = [](const char* pre) {
    return tokenizer_file_of(ggml_fixture("llama3.json", pre), "some.gguf").ignore_merges;
  };
  for (const char* pre : {"llama-bpe", "tekken", "youtu", "minicpm5", "glm4", "glm5"}) EXPECT_TRUE(keeps(pre)) << pre;
  for (const char* pre : {"chatglm-bpe", "dbrx", "smaug-bpe", "gpt-2", "qwen2"}) EXPECT_FALSE(keeps(pre)) << pre;
}

TEST(GgmlVocabulary, KnowsPatternsThatCompileAndKeepEveryByte) {
  Random random(10);
  std::string text;
  for (int i = 0; i < 3000; ++i)
    text += random.below(3) == 0 ? utf8(random_code_point(random)) : " The LAMP's 1234!?\n\n\t 灯台守は\r\n  x";
  int names = 0;
  for (const char* name :
       {"default",      "gpt-2",          "llama-bpe",   "dbrx",       "qwen2",  "qwen35",   "smollm",   "falcon",
        "deepseek-llm", "deepseek-coder", "deepseek-v3", "gpt-4o",     "tekken", "youtu",    "minicpm5", "bloom",
        "viking",       "bailingmoe",     "seed-coder",  "exaone-moe", "jais-2", "ufakzeka", "laguna"}) {
    const Tokenizer tokenizer = from_ggml(ggml_fixture("llama3.json", name));
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << name;
    ++names;
    for (const char* unit : {" ", "\n", "a", "1", "A", "\u2028", "'s", "灯"}) {
      // Quadratic time would take minutes here.
      std::string run = "x";
      while (run.size() < (size_t{1} << 17)) run += unit;
      run += "x";
      // PCRE2 may stop at its limits for some, but must not run on.
      try {
        EXPECT_EQ(tokenizer.decode(tokenizer.encode(run)), run) << name;
      } catch (const InputError& error) {
        EXPECT_CONTAINS(error.what(), "bounded backtracking");
      }
    }
  }
  EXPECT_EQ(names, 23);
}

TEST(GgmlVocabulary, MergesByScoreForTheModelLlama) {
  const Tokenizer tokenizer = from_ggml(scored_vocabulary());
  EXPECT_EQ(tokenizer.encode("a a"), (std::vector<int32_t>{261, 261}));
  // After an added token a space is put before the text again, as in llama.cpp.
  EXPECT_EQ(tokenizer.encode("a<im>a"), (std::vector<int32_t>{261, 262, 261}));
  EXPECT_EQ(tokenizer.encode("<s>a", SpecialTokens::as_text).front(), 259);
  GgmlVocabulary bare = scored_vocabulary();
  bare.add_space_prefix = false;
  EXPECT_EQ(from_ggml(bare).encode("a a"), (std::vector<int32_t>{260, 261}));
  bare.remove_extra_whitespaces = true;
  EXPECT_EQ(from_ggml(bare).encode("  a   a "), (std::vector<int32_t>{260, 261}));
  GgmlVocabulary untyped = scored_vocabulary();
  untyped.types.clear();
  EXPECT_EQ(from_ggml(untyped).encode("a a"), (std::vector<int32_t>{261, 261}));
}

TEST(GgmlVocabulary, RefusesBrokenVocabularies) {
  const auto refused = [](auto change, const char* words, bool scored = false) {
    GgmlVocabulary vocabulary = scored ? scored_vocabulary() : ggml_fixture("llama3.json", "llama-bpe");
    change(vocabulary);
    EXPECT_REFUSED(from_ggml(vocabulary), words);
  };
  refused([](auto& v) { v.model = "t5"; }, "found \"t5\"");
  refused([](auto& v) { v.tokens.clear(), v.types.clear(); }, "found 0");
  refused([](auto& v) { v.types.pop_back(); }, "tokenizer.ggml.token_type");
  refused([](auto& v) { v.scores = {1.0f}; }, "tokenizer.ggml.scores");
  refused([](auto& v) { v.eos_token_id = 421; }, "eos_token_id to be an id from 0 to 420; found 421");
  refused([](auto& v) { v.bos_token_id = -1; }, "bos_token_id");
  refused([](auto& v) { v.tokens[300] = "\xFF"; }, "token 300 is not");
  refused([](auto& v) { v.tokens[420] = v.tokens[300]; }, "at 300 and 420");
  refused([](auto& v) { v.merges[5] = "QQ Q"; }, "merge 5 of");
  refused([](auto& v) { v.merges[5] = "a"; }, "merge 5 of");
  refused([](auto& v) { v.merges[5] = ""; }, "merge 5 of");
  refused([](auto& v) { v.tokens[5] = "", v.merges.clear(); }, "found none for byte");
  refused([](auto& v) { v.add_space_prefix = true; }, "add_space_prefix");
  refused([](auto& v) { v.scores.clear(); }, "expected tokenizer.ggml.scores", true);
  refused([](auto& v) { v.tokens[5] = ""; }, "token 5 empty", true);
  refused([](auto& v) { v.tokens[260] = "▁a"; }, "at 260 and 261", true);
  refused([](auto& v) { v.scores[260] = std::numeric_limits<float>::quiet_NaN(); }, "NaN for \"a\" at 260", true);
}

}  // namespace
}  // namespace prism
