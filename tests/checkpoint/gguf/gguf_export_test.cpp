// Models written as GGUF files are the same when they are read again, and what GGUF cannot express is refused.
// gguf_model_test.cpp writes such files by hand.
#include "prism/checkpoint/gguf/gguf_export.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "prism/checkpoint/gguf/gguf_vocabulary.h"
#include "prism/checkpoint/model_folder.h"
#include "prism/core/fields.h"
#include "prism/formats/gguf.h"
#include "tests/checkpoint/models.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const fs::path kExported = fs::path(PRISM_SOURCE_DIR) / "tests/checkpoint/families";

torch::Tensor logits_of_model(const Decoder& model) {
  const torch::NoGradGuard no_gradients;
  const auto tokens = (torch::arange(40, torch::kLong) * 7 % 200).view({1, 40});
  return model->head.logits(model(tokens, {}));
}

/// Two layers of a Llama whose feed-forward part has rows that 32 does not divide.
ModelConfig small_config(const std::function<void(ModelConfig&)>& change = {}) {
  ModelConfig config;
  config.vocab_size = 264;
  config.d_model = 32;
  config.context = 64;
  config.schedule = "4x2";
  config.ffn_width = 40;
  config.init_std = 0.3;
  config.allow_any = true;
  if (change) change(config);
  expand_shorthand(config);
  complete(config);
  return config;
}

Decoder decoder_of(const ModelConfig& config) {
  Decoder decoder(config);
  decoder->initialise(3);
  return decoder;
}

class GgufExport : public testing::Test {
 protected:
  Decoder fixture(const char* name) const { return load_model(kExported / name, torch::kFloat).decoder; }
  fs::path path() const { return temporary_.path() / "model.gguf"; }
  std::vector<std::string> save(const Decoder& model, BlockType type = BlockType::f32,
                                const Tokenizer* tokenizer = nullptr) const {
    return save_gguf(path(), *model, tokenizer, {.type = type, .name = "model"});
  }
  Decoder saved_and_loaded(const Decoder& model, BlockType type = BlockType::f32) const {
    save(model, type);
    return load_model(path(), torch::kFloat).decoder;
  }
  std::string refusal(const Decoder& model) const {
    auto message = message_of([&] { save(model); });
    EXPECT_TRUE(fs::is_empty(temporary_.path())) << "the file, or a temporary one, was left";
    EXPECT_TRUE(has_way_out(message)) << message;
    return message;
  }
  const TemporaryFolder temporary_;
};

TEST_F(GgufExport, KeepsTheLogitsToTheLastBit) {
  const std::pair<const char*, const char*> cases[] = {
      {"llama", "llama"},     {"llama-with-biases", "llama"}, {"mistral-without-window", "llama"},
      {"version-4", "llama"}, {"several-files", "llama"},     {"linear", "llama"},
      {"qwen2", "qwen2"},     {"float16", "qwen2"},           {"bfloat16", "qwen3"},
      {"yarn", "qwen3"}};
  for (const auto& [name, architecture] : cases) {
    const auto model = fixture(name);
    const auto loaded = saved_and_loaded(model);
    EXPECT_TRUE(torch::equal(logits_of_model(loaded), logits_of_model(model))) << name;
    EXPECT_EQ(GgufReader(path()).metadata().text("general.architecture"), architecture) << name;
    auto config = loaded->config();
    config.allow_any = model->config().allow_any;
    config.init_std = model->config().init_std;
    config.norm_eps = model->config().norm_eps;  // the file has it in float32
    EXPECT_TRUE(equal_fields(config, model->config())) << name;
  }
}

TEST_F(GgufExport, KeepsLayersThatDoNotTurnInASmolLm3) {
  auto config = load_config(kExported / "smollm3");
  config.layers.push_back(config.layers[0]);
  config.layers[1].rotary = config.layers[0].rotary;
  config.layers[3].rotary = {.kind = "none"};
  const auto model = decoder_of(config);
  EXPECT_TRUE(torch::equal(logits_of_model(saved_and_loaded(model)), logits_of_model(model)));
  EXPECT_EQ(GgufReader(path()).metadata().text("general.architecture"), "smollm3");
}

TEST_F(GgufExport, WritesTheScalingOfLlama3AsDivisors) {
  for (const char* name : {"llama-3.1", "version-4-llama-3.1"}) {
    const auto model = fixture(name);
    const auto loaded = saved_and_loaded(model);
    const auto& factors = loaded->config().layers[1].rotary.factors;
    ASSERT_EQ(factors.size(), 4u);
    EXPECT_EQ(factors[0], 1);
    EXPECT_EQ(factors[3], 8);
    // The file has the divisors in float32: an angle p theta of at most 40 is wrong by at most 40 * 2^-24.
    EXPECT_TRUE(torch::allclose(logits_of_model(loaded), logits_of_model(model), 1e-4, 1e-4)) << name;
    // A model that was read from such a file is written with the same divisors.
    const auto logits = logits_of_model(loaded);
    EXPECT_TRUE(torch::equal(logits_of_model(saved_and_loaded(loaded)), logits)) << name;
  }
}

TEST_F(GgufExport, KeepsAnAttentionFactor) {
  const auto with_factor = [](ModelConfig& config) {
    config.each.rotary.scaling = "yarn";
    config.each.rotary.factor = 4;
    config.each.rotary.original_context = 16;
    config.each.rotary.attention_factor = 1.5;
  };
  const auto loaded = saved_and_loaded(decoder_of(small_config(with_factor)));
  EXPECT_NEAR(loaded->config().layers[1].rotary.attention_factor, 1.5, 1e-6);
}

TEST_F(GgufExport, RoundsMatricesAndKeepsNormsAndBiases) {
  const auto model = fixture("llama-with-biases");
  for (const auto& [type, dtype] : {std::pair{BlockType::f16, torch::kHalf}, {BlockType::bf16, torch::kBFloat16}}) {
    const auto loaded = saved_and_loaded(model, type);
    const auto expected = model->weights(), found = loaded->weights();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      auto values = expected[i].weight.tensor().detach();
      if (values.dim() > 1) values = values.to(dtype).to(torch::kFloat);
      EXPECT_TRUE(torch::equal(found[i].weight.tensor().detach(), values)) << found[i].name;
    }
    const GgufReader reader(path());
    for (const auto& tensor : reader.tensors())
      EXPECT_EQ(tensor.type, tensor.shape.size() > 1 ? type : BlockType::f32) << tensor.name;
  }
}

TEST_F(GgufExport, QuantisesRowsOfWholeBlocksAndNamesTheOthers) {
  const auto model = decoder_of(small_config());
  EXPECT_EQ(save(model, BlockType::q8_0), (std::vector<std::string>{"blk.0.ffn_down.weight", "blk.1.ffn_down.weight"}));
  const GgufReader reader(path());
  EXPECT_EQ(reader.find("blk.0.ffn_down.weight").type, BlockType::f16);
  EXPECT_EQ(reader.find("blk.0.ffn_up.weight").type, BlockType::q8_0);
  EXPECT_EQ(reader.find("token_embd.weight").type, BlockType::q8_0);
  const auto loaded = load_model(path(), torch::kFloat).decoder;
  const auto expected = model->weights(), found = loaded->weights();
  ASSERT_EQ(found.size(), expected.size());
  double largest = 0;
  for (size_t i = 0; i < found.size(); ++i) {
    const auto values = expected[i].weight.tensor().detach();
    const auto error = (found[i].weight.tensor().detach() - values).abs();
    if (values.dim() == 1 || values.size(1) % 32 != 0) continue;
    // Half a step a / 127 of the block, and the rounding of the step to float16: 127 steps of relative 2^-11.
    const auto most = values.view({-1, 32}).abs().amax(1, /*keepdim=*/true);
    EXPECT_TRUE((error.view({-1, 32}) <= most * (0.5 / 127 + 1.0 / 2048) * 1.001).all().item<bool>()) << found[i].name;
    largest = std::max(largest, error.max().item<double>());
  }
  EXPECT_GT(largest, 0);
}

TEST_F(GgufExport, WritesTheTypesThatLlamaCppExpects) {
  save(fixture("yarn"), BlockType::q8_0);
  const GgufReader reader(path());
  const auto& values = reader.metadata().values();
  const auto expect = [&](const char* key, const GgufValue& value) {
    ASSERT_TRUE(values.contains(key)) << key;
    EXPECT_EQ(values.at(key), value) << key;
  };
  expect("general.name", std::string("model"));
  expect("general.file_type", uint32_t{7});
  expect("general.quantization_version", uint32_t{2});
  expect("qwen3.block_count", uint32_t{3});
  expect("qwen3.context_length", uint32_t{128});
  expect("qwen3.embedding_length", uint32_t{16});
  expect("qwen3.feed_forward_length", uint32_t{20});
  expect("qwen3.attention.head_count", uint32_t{4});
  expect("qwen3.attention.head_count_kv", uint32_t{2});
  expect("qwen3.attention.key_length", uint32_t{8});
  expect("qwen3.attention.value_length", uint32_t{8});
  expect("qwen3.attention.layer_norm_rms_epsilon", 1e-6f);
  expect("qwen3.rope.dimension_count", uint32_t{8});
  expect("qwen3.rope.freq_base", 1000.0f);
  expect("qwen3.rope.scaling.type", std::string("yarn"));
  expect("qwen3.rope.scaling.factor", 4.0f);
  expect("qwen3.rope.scaling.original_context_length", uint32_t{32});
  expect("qwen3.vocab_size", uint32_t{264});
  expect("tokenizer.ggml.model", std::string("no_vocab"));
  EXPECT_FALSE(values.contains("qwen3.rope.scaling.attn_factor"));
  for (const auto& [type, number] : {std::pair{BlockType::f32, 0u}, {BlockType::f16, 1u}, {BlockType::bf16, 32u}}) {
    save(fixture("llama"), type);
    EXPECT_EQ(GgufReader(path()).metadata().integer("general.file_type"), number);
  }
}

TEST_F(GgufExport, WritesATokenForEachRowOfTheEmbedding) {
  auto tokenizer = tokenizer_of("the lamp of the lighthouse");
  tokenizer.set_chat_template("{{ messages }}");
  ASSERT_LT(tokenizer.vocab_size(), 264);
  const auto model = decoder_of(small_config());
  save_gguf(path(), *model, &tokenizer, {});
  const auto loaded = load_model(path(), torch::kFloat);
  ASSERT_TRUE(loaded.tokenizer);
  EXPECT_EQ(loaded.tokenizer->vocab_size(), 264);
  EXPECT_EQ(loaded.tokenizer->encode("the lamp's house"), tokenizer.encode("the lamp's house"));
  EXPECT_EQ(loaded.tokenizer->bytes(263), "[PAD263]");
  const auto vocabulary = vocabulary_from_gguf(GgufReader(path()));
  ASSERT_TRUE(vocabulary);
  EXPECT_EQ(vocabulary->model, "gpt2");
  EXPECT_EQ(vocabulary->types[263], static_cast<int32_t>(GgmlTokenType::unused));
  EXPECT_EQ(vocabulary->chat_template, "{{ messages }}");
  EXPECT_EQ(vocabulary->add_bos_token, false);
  EXPECT_EQ(loaded.tokenizer->settings(), tokenizer.settings());
}

TEST_F(GgufExport, RefusesModelsThatGgufCannotExpress) {
  const auto refused = [&](const std::function<void(ModelConfig&)>& change) {
    return refusal(decoder_of(small_config(change)));
  };
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.schedule = "2x1,4x1"; }),
                  "expected a model that GGUF can express; found layers of different numbers of heads");
  EXPECT_CONTAINS(refused([](ModelConfig& c) {
                    c.each.budget.kind = "fixed";
                    c.each.budget.share = 0.5;
                  }),
                  "found head budgets; write a model folder instead");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.mirror_middle = 0; }), "found mirrored layers");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.ffn.kind = "g2lu"; }), "found feed-forward parts of another");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.window = 8; }), "found sliding windows");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.rotary.word_dims = 2; }), "found positions in words");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.norm = "layer"; }), "found layers with another norm");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.norm_place = "post"; }), "found layers with post-norm");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.output_projection = false; }), "without an output projection");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.each.rotary.kind = "none"; }), "layers with no rotary encoding");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.learned_positions = true; }), "found vectors of positions");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.final_norm = false; }), "found no norm before the head");
  EXPECT_CONTAINS(refused([](ModelConfig& c) { c.skip = 2; }), "found a second output head");
  EXPECT_CONTAINS(refused([](ModelConfig& c) {
                    c.each.qk_norm = true;
                    c.each.ffn.bias = true;
                  }),
                  "found a combination of parts");
}

TEST_F(GgufExport, RefusesWhatLlamaCppDoesNotReadInAFamily) {
  EXPECT_CONTAINS(refusal(fixture("qwen3")), "found biases of W_O or of the feed-forward part in a qwen3");
  EXPECT_CONTAINS(refusal(fixture("smollm3")), "found layers without rotation that are not every 4th");
  EXPECT_CONTAINS(refusal(fixture("mistral")), "found sliding windows");
  EXPECT_CONTAINS(refusal(fixture("qwen2-with-windows")), "found sliding windows");
  auto config = load_config(kExported / "bfloat16");
  const auto rotary = load_config(kExported / "llama-3.1").layers[0].rotary;
  for (auto& layer : config.layers) layer.rotary = rotary;
  EXPECT_CONTAINS(refusal(decoder_of(config)), "found a scaling of the rotary encoding by pairs in a qwen3");
}

TEST_F(GgufExport, RefusesWeightsBeyondTheType) {
  const auto model = decoder_of(small_config());
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : model->weights())
    if (entry.weight.tensor().dim() > 1) entry.weight.tensor().view(-1)[0] = 65520;
  EXPECT_CONTAINS(message_of([&] { save(model, BlockType::f16); }),
                  "expected weights within the range of F16; found 65520");
  EXPECT_TRUE(fs::is_empty(temporary_.path()));
  EXPECT_NO_THROW(save(model, BlockType::bf16));
}

}  // namespace
}  // namespace prism
