// The vocabularies of llama.cpp's tests, read from their GGUF files.
#include <gtest/gtest.h>

#include <string>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/files.h"
#include "tests/core/large_data.h"
#include "tests/core/temporary_folder.h"
#include "tests/tokenizer/published_cases.h"

namespace prism {
namespace {

TEST(PublishedVocabularies, GiveTheExactIdsOfAllInputs) {
  if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tokenizers/";
  const std::string folder = *data_folder() + "/tokenizers/";
  const struct {
    const char* name;
    SpecialIds ids;
  } rows[] = {{"gpt-2", {.opening = 50256, .ends = {50256}, .opens_prompts = false}},
              {"llama-bpe", {.opening = 128000, .ends = {128001, 128009}, .opens_prompts = true}},
              {"llama-spm", {.opening = 1, .ends = {2}, .opens_prompts = true}},
              {"qwen2", {.opening = 151643, .ends = {151643, 151645}, .opens_prompts = false}}};
  const TemporaryFolder temporary;
  for (const auto& [name, ids] : rows) {
    SCOPED_TRACE(name);
    const auto file = temporary.path() / (std::string(name) + ".gguf");
    write_file(file, read_xz(folder + "ggml-vocab/ggml-vocab-" + name + ".gguf.xz"));
    const Tokenizer tokenizer = open_tokenizer(file);
    expect_published_cases(tokenizer, folder, name);
    const SpecialIds& found = tokenizer.special_ids();
    EXPECT_EQ(found.opening, ids.opening);
    EXPECT_EQ(found.opens_prompts, ids.opens_prompts);
    for (const int32_t end : ids.ends) EXPECT_EQ(found.is_end(end), end < tokenizer.vocab_size()) << end;

    const auto saved = temporary.path() / name;
    make_folder(saved);
    tokenizer.save(saved / "tokenizer.json");
    write_settings(saved, tokenizer);
    const Tokenizer again = Tokenizer::load(saved);
    expect_published_cases(again, folder, name);
    EXPECT_EQ(again.special_ids().opening, found.opening);
    EXPECT_EQ(again.special_ids().opens_prompts, found.opens_prompts);
  }
}

}  // namespace
}  // namespace prism
