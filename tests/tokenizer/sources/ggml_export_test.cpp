// Tokenizers written as vocabularies of GGUF files give the same ids when they are read again.
#include "prism/tokenizer/sources/ggml_export.h"

#include <gtest/gtest.h>

#include "prism/core/error.h"
#include "prism/tokenizer/tokenizer.h"
#include "tests/core/message_of.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using nlohmann::json;

/// A fixture without what GGUF cannot express: flags of added tokens.
Tokenizer fixture_without_flags(const std::string& name) {
  json file = fixture_json(name);
  for (auto& token : file["added_tokens"])
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"}) token[flag] = false;
  return Tokenizer::from_json(file.dump(), name);
}

/// Hostile strings of the fixtures, and random ones with many spaces.
std::vector<std::string> hostile_texts() {
  auto texts = fixture_documents();
  for (const char* name : {"expected.json", "expected_scored.json"})
    for (const auto& row : fixture_json(name)) texts.push_back(row["text"]);
  Random random(4);
  for (int i = 0; i < 100; ++i) {
    std::string text;
    for (int j = 0; j < 20; ++j) text += random.below(3) == 0 ? utf8(random_code_point(random)) : "  the lamp 1887\n";
    texts.push_back(text);
  }
  return texts;
}

void expect_equal_ids(const Tokenizer& original, const std::string& name) {
  const Tokenizer again = Tokenizer::from_ggml(original.ggml_vocabulary(), "some.gguf");
  EXPECT_EQ(again.vocab_size(), original.vocab_size()) << name;
  for (const auto& text : hostile_texts()) {
    const auto ids = original.encode(text);
    EXPECT_EQ(again.encode(text), ids) << name << ": " << json(text).dump();
    EXPECT_EQ(again.decode(ids), original.decode(ids)) << name;
  }
}

TEST(GgmlExport, KeepsTheIdsOfByteLevelTokenizers) {
  for (const char* name : {"gpt2.json", "llama3.json"}) expect_equal_ids(fixture_without_flags(name), name);
  EXPECT_EQ(fixture_without_flags("gpt2.json").ggml_vocabulary().pre, "gpt-2");
  const Tokenizer llama3 = Tokenizer::load(fixture_path("llama3.json"));
  EXPECT_EQ(llama3.ggml_vocabulary().pre, "llama-bpe");
  EXPECT_EQ(Tokenizer::from_ggml(llama3.ggml_vocabulary(), "some.gguf").fingerprint(), llama3.fingerprint());
}

TEST(GgmlExport, KeepsTheIdsOfTokenizersWithByteFallback) {
  for (const char* name : {"scored.model", "spaces.model", "bare.model"})
    expect_equal_ids(Tokenizer::load(fixture_path(name)), name);
  expect_equal_ids(fixture_without_flags("legacy.json"), "legacy.json");
  const auto vocabulary = Tokenizer::load(fixture_path("scored.model")).ggml_vocabulary();
  EXPECT_EQ(vocabulary.model, "llama");
  EXPECT_EQ(vocabulary.unknown_token_id, 0);
  EXPECT_EQ(vocabulary.add_space_prefix, true);
  EXPECT_EQ(vocabulary.types[0], static_cast<int32_t>(GgmlTokenType::unknown));
  EXPECT_EQ(vocabulary.types[1], static_cast<int32_t>(GgmlTokenType::control));
  EXPECT_EQ(vocabulary.types[3], static_cast<int32_t>(GgmlTokenType::byte));
}

TEST(GgmlExport, KeepsTheIdsOfPublishedTokenizersSlow) {
  if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tokenizers/";
  const std::string folder = *data_folder() + "/tokenizers/";
  const auto again = [](const Tokenizer& tokenizer) {
    return Tokenizer::from_ggml(tokenizer.ggml_vocabulary(), "some.gguf");
  };
  for (const char* name : {"gpt2", "llama3", "qwen2.5"}) {
    const auto original = Tokenizer::from_json(read_xz(folder + name + "/tokenizer.json.xz"), name);
    const auto read = again(original);
    for (const auto& text : fixture_documents()) EXPECT_EQ(read.encode(text), original.encode(text)) << name;
  }
  const auto llama2 = Tokenizer::load(folder + "llama2/tokenizer.model");
  EXPECT_EQ(again(llama2).fingerprint(), llama2.fingerprint());
}

TEST(GgmlExport, LeavesOutNfc) {
  const Tokenizer nfc = fixture_without_flags("nfc.json");
  const Tokenizer again = Tokenizer::from_ggml(nfc.ggml_vocabulary(), "some.gguf");
  EXPECT_EQ(again.encode("L'\u00E9t\u00E9"), nfc.encode("L'\u00E9t\u00E9"));
  EXPECT_NE(again.encode("e\u0301"), nfc.encode("e\u0301"));
}

TEST(GgmlExport, FindsTheNameOfThePretokenizer) {
  const auto pre_of = [](const json& steps, bool ignores_merges) {
    json file = fixture_json("llama3.json");
    file["pre_tokenizer"] = {{"type", "Sequence"}, {"pretokenizers", steps}};
    file["model"]["ignore_merges"] = ignores_merges;
    return Tokenizer::from_json(file.dump(), "test").ggml_vocabulary().pre;
  };
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", true}};
  const json digits = {{"type", "Digits"}, {"individual_digits", true}};
  EXPECT_EQ(pre_of({digits, byte_level}, false), "smollm");
  EXPECT_EQ(pre_of(fixture_json("llama3.json")["pre_tokenizer"]["pretokenizers"], false), "dbrx");
  EXPECT_REFUSED(pre_of({digits, byte_level}, true), "found the pre-tokenizer \"single digits then");
}

TEST(GgmlExport, RefusesWhatGgufCannotExpress) {
  const auto refused = [](const std::string& name, auto change, const char* words) {
    json file = fixture_json(name);
    change(file);
    const Tokenizer tokenizer = Tokenizer::from_json(file.dump(), name);
    EXPECT_REFUSED(tokenizer.ggml_vocabulary(), words);
  };
  const auto unchanged = [](json&) {};
  refused("gpt2.json", unchanged, "found the added token \"<|pad|>\" with lstrip; write a model folder instead");
  refused("legacy.json", unchanged, "found the added token \"<|pad|>\" with lstrip");
  refused("first.json", unchanged, "Metaspace before the first word");
  refused(
      "llama3.json",
      [](json& file) {
        file["normalizer"] = {{"type", "Prepend"}, {"prepend", "x"}};
      },
      "found the normalizer \"prepend x\"");
  refused(
      "legacy.json",
      [](json& file) {
        file["added_tokens"].erase(file["added_tokens"].begin() + 3, file["added_tokens"].end());
        file["model"]["merges"].erase(0);
      },
      "found merges that no scores of tokens give");
  EXPECT_REFUSED(Tokenizer::load(fixture_path("digits.json")).ggml_vocabulary(), "found the added token");
  EXPECT_REFUSED(fixture_without_flags("digits.json").ggml_vocabulary(), "which has no name in GGUF");
}

TEST(GgmlExport, FillsIdsWithoutTokens) {
  json file = fixture_json("llama3.json");
  file["added_tokens"].push_back({{"id", 423}, {"content", "<|late|>"}, {"special", true}});
  auto vocabulary = Tokenizer::from_json(file.dump(), "test").ggml_vocabulary();
  add_unused_tokens(vocabulary, 426);
  ASSERT_EQ(vocabulary.tokens.size(), 426u);
  EXPECT_EQ(vocabulary.types.size(), 426u);
  for (const size_t id : {421, 422, 424, 425}) {
    EXPECT_EQ(vocabulary.tokens[id], "[PAD" + std::to_string(id) + "]");
    EXPECT_EQ(vocabulary.types[id], static_cast<int32_t>(GgmlTokenType::unused));
  }
  EXPECT_EQ(vocabulary.tokens[423], "<|late|>");
  add_unused_tokens(vocabulary, 400);
  EXPECT_EQ(vocabulary.tokens.size(), 426u);
  auto scored = Tokenizer::load(fixture_path("scored.model")).ggml_vocabulary();
  add_unused_tokens(scored, std::ssize(scored.tokens) + 3);
  EXPECT_EQ(scored.scores.size(), scored.tokens.size());
  const Tokenizer original = Tokenizer::load(fixture_path("scored.model"));
  EXPECT_EQ(Tokenizer::from_ggml(scored, "some.gguf").encode("the [PAD1] lamp"), original.encode("the [PAD1] lamp"));
}

TEST(GgmlExport, KeepsSpecialIds) {
  for (const SpecialIds& ids :
       {SpecialIds{.opening = 5, .ends = {0, 7}, .opens_prompts = true}, SpecialIds{.opening = 0, .ends = {0}},
        SpecialIds{.opening = 3, .ends = {1}, .opens_prompts = false}}) {
    auto vocabulary = Tokenizer::load(fixture_path("llama3.json")).ggml_vocabulary();
    set_special_ids(vocabulary, ids);
    auto found = settings_of(vocabulary, "some.gguf").special_ids;
    // Token 0 is <|endoftext|>, which ends texts by its spelling.
    std::erase(found.ends, ids.is_end(0) ? -1 : 0);
    EXPECT_EQ(found, ids);
  }
  auto vocabulary = Tokenizer::load(fixture_path("llama3.json")).ggml_vocabulary();
  vocabulary.tokens[8] = "<|eom_id|>";
  set_special_ids(vocabulary, {.opening = 5, .ends = {6, 7, 8}, .opens_prompts = true});
  EXPECT_EQ(vocabulary.eos_token_id, 6);
  EXPECT_EQ(vocabulary.eot_token_id, 7);
  EXPECT_EQ(vocabulary.eom_token_id, 8);
  EXPECT_REFUSED(set_special_ids(vocabulary, {.opening = 5}),
                 "found none of its tokens to end texts, for which llama.cpp takes the id 11; write a model folder");
  auto scored = Tokenizer::load(fixture_path("scored.model")).ggml_vocabulary();
  EXPECT_REFUSED(set_special_ids(scored, {}), "for which llama.cpp takes the id 2");
}

}  // namespace
}  // namespace prism
