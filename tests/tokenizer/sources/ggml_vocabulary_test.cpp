#include "prism/tokenizer/sources/ggml_vocabulary.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/tokenizer/sources/ggml_pretokenizers.h"
#include "prism/tokenizer/special_ids.h"
#include "prism/tokenizer/tokenizer.h"
#include "tests/core/message_of.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

/// The vocabulary of a fixture as a GGUF file has it.
GgmlVocabulary ggml_fixture(const std::string& name, const std::string& pre) {
  const json file = fixture_json(name);
  GgmlVocabulary vocabulary{.model = "gpt2", .pre = pre};
  std::vector<std::string> tokens(file["model"]["vocab"].size());  // the added token is among them
  for (const auto& [token, id] : file["model"]["vocab"].items()) tokens[id.get<size_t>()] = token;
  vocabulary.types.assign(tokens.size(), static_cast<int32_t>(GgmlTokenType::normal));
  for (const auto& token : file["added_tokens"]) {
    const auto id = token["id"].get<size_t>();
    tokens[id] = token["content"];
    const auto type = token["special"].get<bool>() ? GgmlTokenType::control : GgmlTokenType::user_defined;
    vocabulary.types[id] = static_cast<int32_t>(type);
  }
  vocabulary.tokens = tokens;
  for (const auto& merge : file["model"]["merges"])
    vocabulary.merges.push_back(merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  return vocabulary;
}

/// A vocabulary merged by score: <unk>, <s>, </s>, the bytes, a few pieces.
GgmlVocabulary scored_vocabulary() {
  GgmlVocabulary vocabulary{.model = "llama"};
  const auto add = [&](const std::string& token, float score, GgmlTokenType type) {
    vocabulary.tokens.push_back(token);
    vocabulary.scores.push_back(score);
    vocabulary.types.push_back(static_cast<int32_t>(type));
  };
  add("<unk>", 0, GgmlTokenType::unknown);
  add("<s>", 0, GgmlTokenType::control);
  add("</s>", 0, GgmlTokenType::control);
  for (int byte = 0; byte < 256; ++byte) add(fmt::format("<0x{:02X}>", byte), 0, GgmlTokenType::byte);
  add("▁", -3, GgmlTokenType::normal);
  add("a", -4, GgmlTokenType::normal);
  add("▁a", -1, GgmlTokenType::normal);
  add("<im>", 0, GgmlTokenType::user_defined);
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  return vocabulary;
}

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

TEST(SpecialIds, AreTheEndOfTextForATokenizerAlone) {
  const Tokenizer tokenizer = Tokenizer::load(fixture_path("gpt2.json"));
  const SpecialIds ids = special_ids(tokenizer);
  EXPECT_EQ(ids, (SpecialIds{.opening = 0, .ends = {0}, .opens_prompts = false}));
  EXPECT_TRUE(ids.is_end(0));
  EXPECT_FALSE(ids.is_end(1));
  EXPECT_EQ(special_ids(tokenizer, {}, "folder"), ids);
}

SpecialIds ids_of(const Tokenizer& tokenizer, const char* config, const char* generation = "{}",
                  const char* map = "{}") {
  const Json files[] = {Json::parse(config), Json::parse(generation), Json::parse(map)};
  return special_ids(tokenizer, {&files[0], &files[1], &files[2]}, "folder");
}

TEST(SpecialIds, ComeFromTheFilesOfAModelFolder) {
  const Tokenizer tokenizer = Tokenizer::load(fixture_path("scored.model"));
  EXPECT_EQ(ids_of(tokenizer, R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true})"),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  EXPECT_EQ(ids_of(tokenizer, R"({"bos_token": null, "add_bos_token": false})",
                   R"({"bos_token_id": 1, "eos_token_id": [7, 2, 7]})"),
            (SpecialIds{.opening = 1, .ends = {2, 7}, .opens_prompts = false}));
  EXPECT_EQ(ids_of(tokenizer, R"({"tokenizer_class": "LlamaTokenizerFast"})", R"({"eos_token_id": 2})",
                   R"({"bos_token": {"content": "<s>"}})"),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  EXPECT_EQ(ids_of(tokenizer, R"({"tokenizer_class": "GPT2Tokenizer"})"),
            (SpecialIds{.opening = 2, .ends = {2}, .opens_prompts = false}));
}

TEST(SpecialIds, OpenPromptsIfTheTemplateDoes) {
  json file = fixture_json("legacy.json");
  file["post_processor"] = json::parse(R"({"type": "Sequence", "processors": [{"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]})");
  const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), "test");
  EXPECT_EQ(ids_of(tokenizer, R"({"eos_token": "</s>"})"),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  EXPECT_FALSE(ids_of(tokenizer, R"({"add_bos_token": false})").opens_prompts);
}

TEST(SpecialIds, RefuseWhatTheVocabularyDoesNotHave) {
  const Tokenizer tokenizer = Tokenizer::load(fixture_path("scored.model"));
  EXPECT_REFUSED(ids_of(tokenizer, R"({"bos_token": "<bos>"})"), "tokenizer_config.json: expected \"bos_token\"");
  EXPECT_REFUSED(ids_of(tokenizer, R"({"eos_token": 5})"), "found 5");
  EXPECT_REFUSED(ids_of(tokenizer, R"({"add_bos_token": "yes"})"), "found \"yes\"");
  EXPECT_REFUSED(ids_of(tokenizer, "{}", R"({"eos_token_id": "</s>"})"), "generation_config.json");
  EXPECT_REFUSED(ids_of(tokenizer, "{}", R"({"eos_token_id": [-1]})"), "found [-1]");
  EXPECT_REFUSED(ids_of(tokenizer, "{}", "{}", R"({"eos_token": "no"})"), "special_tokens_map.json");
}

TEST(SpecialIds, ComeFromTheMetadataOfAGgufFile) {
  GgmlVocabulary vocabulary = scored_vocabulary();
  EXPECT_EQ(special_ids(vocabulary, "some.gguf"), (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  vocabulary.tokens[262] = "<|im_end|>";
  EXPECT_EQ(special_ids(vocabulary, "some.gguf").ends, (std::vector<int32_t>{2}));  // no control token
  vocabulary.types[262] = static_cast<int32_t>(GgmlTokenType::control);
  vocabulary.eot_token_id = 261;
  vocabulary.add_bos_token = false;
  EXPECT_EQ(special_ids(vocabulary, "some.gguf"),
            (SpecialIds{.opening = 1, .ends = {2, 261, 262}, .opens_prompts = false}));
  vocabulary.eom_token_id = 263;
  EXPECT_REFUSED(special_ids(vocabulary, "some.gguf"), "from 0 to 262; found 263");
  GgmlVocabulary level = ggml_fixture("llama3.json", "qwen2");
  level.eos_token_id = 0;
  EXPECT_EQ(special_ids(level, "some.gguf"), (SpecialIds{.opening = 0, .ends = {0}, .opens_prompts = false}));
  level.pre = "llama-bpe";
  level.bos_token_id = 5;
  EXPECT_EQ(special_ids(level, "some.gguf"), (SpecialIds{.opening = 5, .ends = {0}, .opens_prompts = true}));
}

}  // namespace
}  // namespace prism
