// Special ids and chat templates, from the files beside a tokenizer and from GGUF metadata.
#include "prism/tokenizer/text_settings.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <string>

#include "prism/core/error.h"
#include "prism/core/files.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/tokenizer/ggml_vocabularies.h"
#include "tests/tokenizer/tokenizer_helpers.h"

namespace prism {
namespace {

using Files = std::map<std::string, std::string>;

/// The settings of a folder with the tokenizer of scored.model and these files.
TextSettings settings_in(const Files& files, const std::string& tokenizer = "scored.model") {
  const TemporaryFolder folder;
  const auto name = tokenizer.ends_with(".json") ? "tokenizer.json" : "tokenizer.model";
  write_file(folder.path() / name, read_file(fixture_path(tokenizer)));
  for (const auto& [file, text] : files) write_file(folder.path() / file, text);
  return Tokenizer::load(folder.path()).settings();
}

SpecialIds ids_in(const Files& files) {
  return settings_in(files).special_ids;
}

TEST(TextSettings, AreTheEndOfTextForATokenizerAlone) {
  const TextSettings settings = settings_in({}, "gpt2.json");
  EXPECT_EQ(settings.special_ids, (SpecialIds{.opening = 0, .ends = {0}, .opens_prompts = false}));
  EXPECT_TRUE(settings.special_ids.is_end(0));
  EXPECT_FALSE(settings.special_ids.is_end(1));
  EXPECT_EQ(settings, Tokenizer::load(fixture_path("gpt2.json")).settings());
  EXPECT_EQ(settings.chat_template, std::nullopt);
}

TEST(TextSettings, ComeFromTheFilesOfAModelFolder) {
  EXPECT_EQ(ids_in({{"tokenizer_config.json",
                     R"({"bos_token": "<s>", "eos_token": {"content": "</s>"}, "add_bos_token": true})"}}),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  EXPECT_EQ(ids_in({{"tokenizer_config.json", R"({"bos_token": null, "add_bos_token": false})"},
                    {"generation_config.json", R"({"bos_token_id": 1, "eos_token_id": [7, 2, 7]})"}}),
            (SpecialIds{.opening = 1, .ends = {7, 2}, .opens_prompts = false}));
  EXPECT_EQ(ids_in({{"tokenizer_config.json", R"({"tokenizer_class": "LlamaTokenizerFast"})"},
                    {"generation_config.json", R"({"eos_token_id": 2})"},
                    {"special_tokens_map.json", R"({"bos_token": {"content": "<s>"}})"}}),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  EXPECT_EQ(ids_in({{"tokenizer_config.json", R"({"tokenizer_class": "GPT2Tokenizer"})"}}),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = false}));
}

/// transformers takes the ids of config.json for a model without generation_config.json.
TEST(TextSettings, TakeTheIdsOfTheConfigIfThereIsNoOther) {
  const Files config = {{"config.json", R"({"bos_token_id": 1, "eos_token_id": 9})"}};
  EXPECT_EQ(ids_in(config), (SpecialIds{.opening = 1, .ends = {9}, .opens_prompts = false}));
  Files both = config;
  both["generation_config.json"] = R"({"eos_token_id": 2})";
  EXPECT_EQ(ids_in(both).ends, (std::vector<int32_t>{2}));
}

TEST(TextSettings, OpenPromptsIfThePostProcessorDoes) {
  auto file = fixture_json("legacy.json");
  file["post_processor"] = nlohmann::json::parse(R"({"type": "Sequence", "processors": [{"type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}]}]})");
  const TemporaryFolder folder;
  write_file(folder.path() / "tokenizer.json", file.dump());
  EXPECT_EQ(Tokenizer::load(folder.path()).special_ids(),
            (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  write_file(folder.path() / "tokenizer_config.json", R"({"add_bos_token": false})");
  const auto silent = Tokenizer::load(folder.path());
  EXPECT_FALSE(silent.special_ids().opens_prompts);
  const TemporaryFolder copy;
  silent.save(copy.path() / "tokenizer.json");
  EXPECT_TRUE(nlohmann::json::parse(read_file(copy.path() / "tokenizer.json"))["post_processor"].is_null());
}

TEST(TextSettings, HoldTheChatTemplate) {
  const auto template_in = [](const Files& files) { return settings_in(files).chat_template; };
  EXPECT_EQ(template_in({{"tokenizer_config.json", R"({"chat_template": "a"})"}}), "a");
  EXPECT_EQ(template_in({{"tokenizer_config.json", R"({"chat_template": "a"})"}, {"chat_template.jinja", "b"}}), "b");
  EXPECT_EQ(template_in({{"tokenizer_config.json",
                          R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                                {"name": "default", "template": "d"}]})"}}),
            "d");
  const auto tool_template_in = [](const Files& files) { return settings_in(files).tool_template; };
  EXPECT_EQ(tool_template_in({{"tokenizer_config.json", R"({"chat_template": "a"})"}}), std::nullopt);
  Files files = {{"tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "t"},
                                                                {"name": "default", "template": "d"}]})"}};
  EXPECT_EQ(tool_template_in(files), "t");
  files["chat_template.jinja"] = "b";
  EXPECT_EQ(tool_template_in(files), std::nullopt) << "files beside the config take the place of its templates";
  EXPECT_REFUSED(template_in({{"tokenizer_config.json", R"({"chat_template": [{"name": "rag", "template": "t"}]})"}}),
                 "expected chat_template to be text, or a list with a template named \"default\"");
  EXPECT_REFUSED(template_in({{"tokenizer_config.json", R"({"chat_template": 5})"}}), "found 5");
}

TEST(TextSettings, NameTheTokensThatTemplatesUse) {
  const auto tokens = settings_in({{"tokenizer_config.json", R"({"bos_token": "<s>", "pad_token": null})"},
                                   {"special_tokens_map.json", R"({"eos_token": "</s>", "unk_token": "<unk>"})"}})
                          .special_tokens;
  EXPECT_EQ(tokens,
            (std::map<std::string, std::string>{{"bos_token", "<s>"}, {"eos_token", "</s>"}, {"unk_token", "<unk>"}}));
}

TEST(TextSettings, AreReadBackAsTheyAreWritten) {
  const Files files = {{"tokenizer_config.json", R"({"bos_token": "<s>", "eos_token": "</s>", "add_bos_token": true,
                                                     "unk_token": "<unk>", "chat_template": "{{ messages }}\n"})"}};
  const TemporaryFolder folder, copy;
  write_file(folder.path() / "tokenizer.model", read_file(fixture_path("scored.model")));
  for (const auto& [file, text] : files) write_file(folder.path() / file, text);
  const Tokenizer tokenizer = Tokenizer::load(folder.path());
  tokenizer.save(copy.path() / "tokenizer.json");
  write_settings(copy.path(), tokenizer, 512);
  EXPECT_EQ(Tokenizer::load(copy.path()).settings(), tokenizer.settings());
  const auto processor = nlohmann::json::parse(read_file(copy.path() / "tokenizer.json"))["post_processor"];
  EXPECT_EQ(processor["type"], "TemplateProcessing") << "transformers reads this, not add_bos_token";
  EXPECT_EQ(processor["single"][0]["SpecialToken"]["id"], "<s>");
  EXPECT_EQ(processor["special_tokens"]["<s>"]["ids"], std::vector<int>{1});
  EXPECT_EQ(Tokenizer::load(copy.path() / "tokenizer.json").template_opening(), 1);
}

TEST(TextSettings, KeepTheTemplateOfConversationsWithTools) {
  const TemporaryFolder folder, copy;
  std::filesystem::create_directory(folder.path() / "additional_chat_templates");
  write_file(folder.path() / "tokenizer.model", read_file(fixture_path("scored.model")));
  write_file(folder.path() / "chat_template.jinja", "usual");
  write_file(folder.path() / "additional_chat_templates/tool_use.jinja", "tools");
  Tokenizer tokenizer = Tokenizer::load(folder.path());
  EXPECT_EQ(tokenizer.chat_template(), "usual");
  EXPECT_EQ(tokenizer.settings().tool_template, "tools");
  tokenizer.save(copy.path() / "tokenizer.json");
  write_settings(copy.path(), tokenizer);
  const auto read = Tokenizer::load(copy.path()).settings();
  EXPECT_EQ(read.chat_template, "usual");
  EXPECT_EQ(read.tool_template, "tools");
  tokenizer.set_chat_template("mine");
  EXPECT_EQ(tokenizer.settings().tool_template, std::nullopt);
}

TEST(TextSettings, RefuseWhatTheVocabularyDoesNotHave) {
  const auto config = [](const char* text) { return ids_in({{"tokenizer_config.json", text}}); };
  EXPECT_REFUSED(config(R"({"bos_token": "<bos>"})"), "tokenizer_config.json: expected \"bos_token\"");
  EXPECT_REFUSED(config(R"({"eos_token": 5})"), "found 5");
  EXPECT_REFUSED(config(R"({"add_bos_token": "yes"})"), "found \"yes\"");
  EXPECT_REFUSED(config("[]"), "expected an object; found array");
  EXPECT_REFUSED(config("{"), "tokenizer_config.json");
  EXPECT_REFUSED(ids_in({{"generation_config.json", R"({"eos_token_id": "</s>"})"}}), "generation_config.json");
  EXPECT_REFUSED(ids_in({{"generation_config.json", R"({"eos_token_id": [-1]})"}}), "found [-1]");
  EXPECT_REFUSED(ids_in({{"generation_config.json", R"({"eos_token_id": 1000000})"}}), "found 1000000");
  EXPECT_REFUSED(ids_in({{"special_tokens_map.json", R"({"eos_token": "no"})"}}), "special_tokens_map.json");
}

TEST(TextSettings, EndTextsByTheSpellingsThatLlamaCppKnows) {
  const auto ends_of = [](const std::vector<std::string>& tokens) {
    GgmlVocabulary vocabulary{.model = "gpt2", .pre = "qwen2", .tokens = tokens};
    vocabulary.eos_token_id = 0;
    return settings_of(vocabulary, "some.gguf").special_ids.ends;
  };
  using Ids = std::vector<int32_t>;
  EXPECT_EQ(ends_of({"a", "", "<|im_start|>", "<|im_end|>", "[EOT]"}), (Ids{0, 3, 4}));
  EXPECT_EQ(ends_of({"a", "<|fim_prefix|>", "<|fim_pad|>", "<|repo_name|>", "<|file_sep|>"}), (Ids{0, 2, 3, 4}));
  EXPECT_EQ(ends_of({"a", "<PAD>", "[PAD]", "<REPO>", "<|fim_repo|>"}), (Ids{0, 1, 3})) << "the first of each kind";
  EXPECT_EQ(ends_of({"a", "<|end|>", "<|return|>"}), (Ids{0, 1, 2}));
  EXPECT_EQ(ends_of({"a", "<|end|>", "<|return|>", "<|call|>"}), (Ids{0, 2, 3}));
  EXPECT_EQ(ends_of({"a", "</s>", "<|tool_response>"}), (Ids{0, 2}));
}

TEST(TextSettings, ComeFromTheMetadataOfAGgufFile) {
  const auto ids_of = [](const GgmlVocabulary& vocabulary) { return settings_of(vocabulary, "some.gguf").special_ids; };
  GgmlVocabulary vocabulary = scored_vocabulary();
  EXPECT_EQ(ids_of(vocabulary), (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true}));
  vocabulary.bos_token_id.reset();
  vocabulary.eos_token_id.reset();
  EXPECT_EQ(ids_of(vocabulary), (SpecialIds{.opening = 1, .ends = {2}, .opens_prompts = true})) << "llama.cpp's ids";
  EXPECT_EQ(settings_of(vocabulary, "some.gguf").special_tokens.at("unk_token"), "<unk>");
  GgmlVocabulary two{.model = "llama", .tokens = {"a", "b"}};
  EXPECT_EQ(ids_of(two), (SpecialIds{.opening = 1, .ends = {}, .opens_prompts = true}));
  vocabulary.bos_token_id = 1;
  vocabulary.eos_token_id = 2;
  vocabulary.tokens[262] = "<|im_end|>";
  EXPECT_EQ(ids_of(vocabulary).ends, (std::vector<int32_t>{2, 262})) << "a token of any type";
  vocabulary.eot_token_id = 261;
  vocabulary.add_bos_token = false;
  vocabulary.chat_template = "{{ bos_token }}";
  EXPECT_EQ(ids_of(vocabulary), (SpecialIds{.opening = 1, .ends = {2, 261, 262}, .opens_prompts = false}));
  const Tokenizer tokenizer = Tokenizer::from_ggml(vocabulary, "some.gguf");
  EXPECT_EQ(tokenizer.settings(), settings_of(vocabulary, "some.gguf"));
  EXPECT_EQ(tokenizer.settings().special_tokens.at("bos_token"), "<s>");
  EXPECT_EQ(tokenizer.chat_template(), "{{ bos_token }}");
  vocabulary.eom_token_id = 263;
  EXPECT_REFUSED(ids_of(vocabulary), "from 0 to 262; found 263");
  GgmlVocabulary level = ggml_fixture("llama3.json", "qwen2");
  level.eos_token_id = 0;
  EXPECT_EQ(ids_of(level), (SpecialIds{.opening = 0, .ends = {0}, .opens_prompts = false}));
  level.pre = "llama-bpe";
  level.bos_token_id = 5;
  EXPECT_EQ(ids_of(level), (SpecialIds{.opening = 5, .ends = {0}, .opens_prompts = true}));
}

}  // namespace
}  // namespace prism
