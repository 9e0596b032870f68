// Checkpoints of llama2.c, written here in its order, give the logits of the model itself.
#include "prism/checkpoint/llama2c_model.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "prism/generation/generate.h"
#include "prism/layers/named_tensor.h"
#include "tests/checkpoint/llama2c_bytes.h"
#include "tests/core/large_data.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

constexpr int32_t kLlama2cLayers = 2, kLlama2cWidth = 16, kLlama2cFfn = 12, kLlama2cHeads = 4, kLlama2cKvHeads = 2,
                  kLlama2cVocab = 262, kLlama2cContext = 32;

ModelConfig llama2c_config(bool tied) {
  ModelConfig config;
  config.vocab_size = kLlama2cVocab;
  config.d_model = kLlama2cWidth;
  config.context = kLlama2cContext;
  config.schedule = "4x2";
  config.kv_schedule = "2x2";
  config.ffn_width = kLlama2cFfn;
  config.init_std = 0.3;
  config.tied = tied;
  expand_shorthand(config);
  complete(config);
  return config;
}

/// The bytes of a checkpoint. Rows of W_Q and W_K are those for pairs (2j, 2j + 1).
std::string checkpoint_of(const Decoder& model, bool tied) {
  std::string bytes;
  for (const int32_t number : {kLlama2cWidth, kLlama2cFfn, kLlama2cLayers, kLlama2cHeads, kLlama2cKvHeads,
                               tied ? kLlama2cVocab : -kLlama2cVocab, kLlama2cContext})
    append_number(bytes, number);
  std::map<std::string, torch::Tensor> tensors;
  for (const auto& entry : model->weights())
    for (const auto& tensor : entry.tensors)
      tensors[tensor.name] = tensor.of(entry.weight.tensor()).detach().contiguous();
  const auto put = [&](const std::string& name, int64_t heads = 0) {
    auto values = tensors.at(name);
    if (heads > 0)
      values = values.view({heads, 2, kLlama2cWidth / kLlama2cHeads / 2, kLlama2cWidth}).transpose(1, 2).contiguous();
    bytes.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  };
  put("model.embed_tokens.weight");
  for (const auto& [part, heads] : {std::pair{"input_layernorm", 0},
                                    {"self_attn.q_proj", kLlama2cHeads},
                                    {"self_attn.k_proj", kLlama2cKvHeads},
                                    {"self_attn.v_proj", 0},
                                    {"self_attn.o_proj", 0},
                                    {"post_attention_layernorm", 0},
                                    {"mlp.gate_proj", 0},
                                    {"mlp.down_proj", 0},
                                    {"mlp.up_proj", 0}})
    for (int layer = 0; layer < kLlama2cLayers; ++layer)
      put("model.layers." + std::to_string(layer) + "." + part + ".weight", heads);
  put("model.norm.weight");
  bytes.append(static_cast<size_t>(kLlama2cContext) * kLlama2cWidth / kLlama2cHeads * sizeof(float), '\0');
  if (!tied) put("lm_head.weight");
  return bytes;
}

torch::Tensor llama2c_logits(const Decoder& model) {
  const torch::NoGradGuard no_gradients;
  const auto tokens = (torch::arange(30, torch::kLong) * 7 % kLlama2cVocab).view({1, 30});
  return model->head.logits(model(tokens, {}));
}

TEST(Llama2c, GivesTheLogitsOfTheModel) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "model.bin";
  write_file(folder.path() / "tokenizer.bin", llama2c_vocabulary());
  for (const bool tied : {true, false}) {
    Decoder model(llama2c_config(tied));
    model->initialise(5);
    write_file(file, checkpoint_of(model, tied));
    EXPECT_TRUE(is_llama2c(file));
    const auto loaded = load_model(file, torch::kFloat);
    EXPECT_EQ(loaded.decoder->config().tied, tied);
    EXPECT_TRUE(torch::equal(llama2c_logits(loaded.decoder), llama2c_logits(model)));
    ASSERT_TRUE(loaded.tokenizer);
    EXPECT_EQ(loaded.tokenizer->encode("a a"), (std::vector<int32_t>{261, 261}));
  }
}

TEST(Llama2c, GivesItsPartsOneByOne) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "model.bin", vocabulary = folder.path() / "tokenizer.bin";
  write_file(vocabulary, llama2c_vocabulary());
  Decoder model(llama2c_config(true));
  model->initialise(5);
  write_file(file, checkpoint_of(model, true));
  EXPECT_EQ(find_model_folder(file), file);
  EXPECT_EQ(load_config(file).d_model, kLlama2cWidth);
  const auto source = open_weights(file);
  EXPECT_EQ(source->names().size(), 2 + 9 * static_cast<size_t>(kLlama2cLayers));
  EXPECT_EQ(source->read("model.layers.1.self_attn.k_proj.weight").sizes(),
            (std::vector<int64_t>{kLlama2cWidth / 2, kLlama2cWidth}));
  EXPECT_REFUSED(source->read("lm_head.weight"), "model.bin: expected a tensor for lm_head.weight; found none");
  for (const auto& path : {file, vocabulary}) {
    const auto tokenizer = open_tokenizer(path);
    EXPECT_EQ(tokenizer.vocab_size(), kLlama2cVocab);
    const SpecialIds expected{.opening = 1, .ends = {2, 1}, .opens_prompts = true};
    EXPECT_EQ(tokenizer.special_ids(), expected);
  }
  EXPECT_TRUE(begins_as_llama2c(file));
  EXPECT_FALSE(begins_as_llama2c(vocabulary));
}

/// What llama2.c publishes: temperature 0, 200 steps from the token that opens texts.
TEST(Llama2c, Stories260KContinuesAsPublished) {
  if (!data_folder()) GTEST_SKIP() << "set PRISM_DATA to the folder that holds tinyllamas/";
  const fs::path folder = fs::path(*data_folder()) / "tinyllamas/stories260K";
  const TemporaryFolder temporary;
  fs::copy(folder / "stories260K.bin", temporary.path() / "model.bin");
  fs::copy(folder / "tok512.bin", temporary.path() / "tokenizer.bin");
  const auto model = load_model(temporary.path() / "model.bin", torch::kFloat);
  GenerateOptions options;
  options.max_new_tokens = 200;
  options.sampler.temperature = 0;
  auto expected = read_file(folder / "expected_greedy_200.txt");
  while (expected.ends_with('\n')) expected.pop_back();
  EXPECT_EQ(generate(model.decoder, *model.tokenizer, "", options).text, expected);
}

TEST(Llama2c, IsRefusedWithASentence) {
  const TemporaryFolder folder;
  const auto file = folder.path() / "model.bin";
  Decoder model(llama2c_config(true));
  model->initialise(5);
  const auto good = checkpoint_of(model, true);
  const auto load = [&](const std::string& bytes) {
    write_file(file, bytes);
    load_model(file, torch::kFloat);
  };
  EXPECT_REFUSED(load(good), "expected the tokenizer of");
  write_file(folder.path() / "tokenizer.bin", llama2c_vocabulary());
  EXPECT_NO_THROW(load(good));
  EXPECT_REFUSED(load(good.substr(0, 20)), "expected at least 28 bytes; found 20");
  EXPECT_REFUSED(load(good.substr(0, good.size() - 4)), "found it cut short");
  EXPECT_REFUSED(load(good + "more"), "found 4 more bytes");
  EXPECT_REFUSED(load("ak42" + good.substr(4)), "whose width is within 1-");
  EXPECT_REFUSED(load(llama2c_vocabulary()), "whose feed-forward width is within 1-16777216; found 0");
  const auto with_header = [&](const std::vector<int32_t>& numbers) {
    std::string bytes;
    for (const int32_t number : numbers) append_number(bytes, number);
    return bytes + good.substr(bytes.size());
  };
  // Sizes that no memory holds, and sums of them beyond int64.
  constexpr int32_t kMost = 1 << 24;
  EXPECT_REFUSED(load(with_header({kMost, kMost, 1, 4096, 4096, kMost, kMost})),
                 "model.bin: expected a file of the size");
  EXPECT_REFUSED(load(with_header({16, 12, 2, 4, 2, kMost, kMost})), "found it cut short");
  EXPECT_REFUSED(load(with_header({16, 12, 4097, 4, 2, 262, 32})), "a number of layers within 1-4096; found 4097");
  EXPECT_REFUSED(load(with_header({16, 12, 2, 3, 3, 262, 32})), "model.bin: ");
  auto few = good;
  const int32_t vocabulary = 100;
  std::memcpy(few.data() + 20, &vocabulary, sizeof vocabulary);
  few.resize(few.size() - static_cast<size_t>(kLlama2cVocab - vocabulary) * kLlama2cWidth * sizeof(float));
  EXPECT_REFUSED(load(few), "expected a tokenizer of at most 100 tokens");
}

}  // namespace
}  // namespace prism
