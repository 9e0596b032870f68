// Commands take a checkpoint of llama2.c as they take a model folder.
#include <gtest/gtest.h>

#include <cstdint>
#include <filesystem>
#include <string>

#include "prism/core/files.h"
#include "tests/checkpoint/llama2c_bytes.h"
#include "tests/cli/commands.h"

namespace prism {
namespace {

/// A checkpoint of zeros with a width of 8, 2 heads and 1 layer.
std::string zero_checkpoint() {
  constexpr int32_t kWidth = 8, kFfnWidth = 8, kLayers = 1, kHeads = 2, kVocab = 262, kContext = 16;
  std::string bytes;
  for (const int32_t number : {kWidth, kFfnWidth, kLayers, kHeads, kHeads, kVocab, kContext})
    append_number(bytes, number);
  const int floats = kVocab * kWidth + 3 * kWidth + 4 * kWidth * kWidth + 3 * kWidth * kFfnWidth +  //
                     kContext * kWidth / kHeads;
  return bytes + std::string(static_cast<size_t>(floats) * sizeof(float), '\0');
}

TEST(Llama2cCommands, TakeACheckpointWhereTheyTakeAModel) {
  const auto folder = Workshop::folder() / "llama2c";
  make_folder(folder);
  write_file(folder / "model.bin", zero_checkpoint());
  const auto no_tokenizer = run({"generate", "llama2c/model.bin", "a", "--max-new-tokens", "2"});
  expect_sentence(no_tokenizer, 2, {"expected the tokenizer of llama2c/model.bin in ", "found none; copy it there"});
  write_file(folder / "tokenizer.bin", llama2c_vocabulary());
  const auto info = run({"info", "llama2c/model.bin"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_CONTAINS(info.out, "context 16, vocabulary 262");
  const auto made = run({"generate", "llama2c/model.bin", "a", "--max-new-tokens", "2", "--ignore-eos", "--json"});
  EXPECT_EQ(lines_of(made).at(0).at("new_tokens"), 2);
  const auto read = run({"eval", "llama2c/model.bin", "text.txt", "--dtype", "float32", "--json"});
  EXPECT_NEAR(lines_of(read).at(0).at("token_perplexity").get<double>(), 262, 0.1) << "all tokens are equally likely";
  ASSERT_EQ(run({"convert", "llama2c/model.bin", "llama2c/copy"}).status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder / "copy/tokenizer.json"));
  expect_sentence(run({"chat", "llama2c/model.bin"}), 2, {"expected a chat template in llama2c/model.bin"});
  expect_sentence(run({"info", "llama2c/tokenizer.bin"}), 2, {"whose feed-forward width is within"});
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace prism
