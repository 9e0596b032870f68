// Weights that are read packed hold the values of the file, in its types where products take them.
#include "prism/checkpoint/frozen_weights.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "prism/checkpoint/gguf/gguf_export.h"
#include "prism/checkpoint/model_folder.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

/// A Llama with grouped heads, rows of whole blocks, and a feed-forward part whose rows have none.
Decoder packable_model(int64_t ffn_width) {
  ModelConfig config;
  config.vocab_size = 70;
  config.d_model = 64;
  config.context = 32;
  config.schedule = "4x2";
  config.kv_schedule = "2x2";
  config.ffn_width = ffn_width;
  config.init_std = 0.3;
  config.allow_any = true;
  expand_shorthand(config);
  complete(config);
  Decoder decoder(config);
  decoder->initialise(3);
  return decoder;
}

class FrozenFiles : public testing::Test {
 protected:
  void SetUp() override {
    if (!PackedWeight::prompt_type()) GTEST_SKIP() << "needs prism's kernels";
    halves_ = PackedWeight::prompt_type() == torch::kBFloat16;
  }
  LoadOptions options(WeightStorage storage) const { return {halves_ ? torch::kBFloat16 : torch::kFloat, storage}; }
  fs::path gguf(const Decoder& model, BlockType type) const {
    auto path = temporary_.path() / "model.gguf";
    save_gguf(path, *model, nullptr, {.type = type, .name = "model"});
    return path;
  }
  /// The packed types of a weight.
  static std::vector<BlockType> types_of(const Weight& weight) {
    std::vector<BlockType> types;
    if (weight.packed() == nullptr) return types;
    for (const auto& part : weight.packed()->parts()) types.push_back(part.type);
    return types;
  }
  /// Expects the rows of all packed weights to be those of `plain`, rounded to bfloat16 if `rounds`.
  static void expect_rows(const Decoder& packed, const Decoder& plain, bool rounds) {
    const auto found = packed->weights(), expected = plain->weights();
    ASSERT_EQ(found.size(), expected.size());
    for (size_t i = 0; i < found.size(); ++i) {
      auto values = expected[i].weight.tensor().detach();
      if (found[i].weight.packed() == nullptr) {
        EXPECT_TRUE(torch::equal(found[i].weight.tensor(), values)) << found[i].name;
        continue;
      }
      if (rounds) values = values.to(torch::kBFloat16).to(torch::kFloat);
      const auto rows = found[i].weight.rows(torch::arange(values.size(0), torch::kLong));
      EXPECT_TRUE(torch::equal(rows, values)) << found[i].name;
    }
  }
  bool halves_ = false;
  const TemporaryFolder temporary_;
};

TEST_F(FrozenFiles, KeepTheTypesOfAGgufFile) {
  const auto path = gguf(packable_model(96), BlockType::q8_0);
  const auto packed = load_model(path, options(WeightStorage::file)), plain = load_model(path, torch::kFloat);
  for (const auto& entry : packed.decoder->weights()) {
    if (packed.decoder->freezes(entry)) {
      EXPECT_EQ(types_of(entry.weight), std::vector{BlockType::q8_0}) << entry.name;
    } else {
      EXPECT_EQ(entry.weight.packed(), nullptr) << entry.name;
    }
  }
  expect_rows(packed.decoder, plain.decoder, /*rounds=*/false);  // the order of Q's and K's rows included
  EXPECT_TRUE(packed.converted.empty());
}

TEST_F(FrozenFiles, MixTypesInAWeightWhoseRowsHaveNoWholeBlocks) {
  const auto path = gguf(packable_model(40), BlockType::q8_0);  // W_down becomes F16
  const auto packed = load_model(path, options(WeightStorage::file));
  const auto& mlp = packed.decoder->weights();
  int halves = 0;
  for (const auto& entry : mlp)
    if (entry.name.find("down") != std::string::npos) {
      EXPECT_EQ(types_of(entry.weight), halves_ ? std::vector{BlockType::bf16} : std::vector<BlockType>());
      ++halves;
    }
  EXPECT_EQ(halves, 2);
}

TEST_F(FrozenFiles, ComeFromFoldersToo) {
  const auto model = packable_model(96);
  save_model(temporary_.path(), *model, nullptr);
  const auto halves = load_model(temporary_.path(), options(WeightStorage::bfloat16));
  for (const auto& entry : halves.decoder->weights())
    EXPECT_EQ(entry.weight.packed() != nullptr, halves.decoder->freezes(entry)) << entry.name;
  expect_rows(halves.decoder, model, /*rounds=*/true);
  // float32 is not packed where products are computed in it.
  const auto as_stored = load_model(temporary_.path(), options(WeightStorage::file));
  EXPECT_EQ(as_stored.decoder->embedding.weight.packed() != nullptr, halves_);
  const auto single = load_model(temporary_.path(), options(WeightStorage::float32));
  for (const auto& entry : single.decoder->weights()) EXPECT_EQ(entry.weight.packed(), nullptr) << entry.name;
}

TEST_F(FrozenFiles, AreNotPackedIfPromptsAreComputedInAnotherDtype) {
  const auto path = gguf(packable_model(96), BlockType::q8_0);
  const auto other = load_model(path, {halves_ ? torch::kFloat : torch::kBFloat16, WeightStorage::file});
  for (const auto& entry : other.decoder->weights()) EXPECT_EQ(entry.weight.packed(), nullptr) << entry.name;
}

TEST_F(FrozenFiles, AreRefusedWithTheShapeThatIsWrong) {
  save_model(temporary_.path(), *packable_model(96), nullptr);
  const auto other = packable_model(128);
  write_tensors(temporary_.path() / "model.safetensors", [&] {
    std::vector<NamedTensor> tensors;
    for (const auto& entry : other->weights())
      for (const auto& tensor : entry.tensors) tensors.push_back({tensor.name, tensor.of(entry.weight.tensor())});
    return tensors;
  }());
  EXPECT_REFUSED(load_model(temporary_.path(), options(WeightStorage::bfloat16)), "expected the shape [96, 64]");
}

TEST(WeightStorageName, IsOneOfThree) {
  EXPECT_EQ(find_weight_storage("file"), WeightStorage::file);
  EXPECT_EQ(find_weight_storage("bf16"), WeightStorage::bfloat16);
  EXPECT_EQ(find_weight_storage("float32"), WeightStorage::float32);
  EXPECT_REFUSED(find_weight_storage("q4"), "q4");
}

}  // namespace
}  // namespace prism
