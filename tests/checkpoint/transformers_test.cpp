// Logits of saved models, computed by transformers (benchmarks/peers/huggingface.py --fixtures), against prism's.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/tensor_file.h"
#include "prism/core/fields.h"
#include "prism/core/files.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

namespace fs = std::filesystem;

const fs::path kFixtures = fs::path(PRISM_SOURCE_DIR) / "tests/checkpoint/transformers";

torch::Tensor read_one(const fs::path& file, const std::string& name) {
  return read_tensor(SafetensorsReader(file), name);
}

double difference(const fs::path& folder, const torch::Tensor& logits) {
  return (read_one(folder / "transformers.safetensors", "logits") - logits).abs().max().item<double>();
}

TEST(Transformers, ComputesTheLogitsOfLanguageModels) {
  const torch::NoGradGuard no_gradients;
  for (const char* name : {"prisma", "gpt"}) {
    const auto folder = kFixtures / name;
    const auto model = load_model(folder, torch::kFloat);
    const auto tokens = read_one(folder / "transformers.safetensors", "tokens");
    EXPECT_LT(difference(folder, model.decoder->head.logits(model.decoder(tokens, {}))), 1e-4) << name;
    KvCache cache(model.decoder->config().layers, {.positions = tokens.size(1)});
    ForwardContext context;
    context.cache = &cache;
    std::vector<torch::Tensor> each;
    for (int64_t t = 0; t < tokens.size(1); ++t)
      each.push_back(model.decoder->head.logits(model.decoder(tokens.narrow(1, t, 1), context)));
    EXPECT_LT(difference(folder, at::cat(each, 1)), 1e-4) << name << " with a cache";
  }
}

TEST(Transformers, ComputesTheLogitsOfClassifiers) {
  const torch::NoGradGuard no_gradients;
  const auto folder = kFixtures / "classifier";
  const auto model = load_classifier(folder, torch::kFloat);
  const auto tokens = read_one(folder / "transformers.safetensors", "tokens");
  const auto hidden = model.classifier(tokens, {});
  EXPECT_LT(difference(folder, model.classifier->head.logits(hidden, {})), 1e-4);
}

TEST(Transformers, FindsItsClassesBesideModelsOfOurOwnFormatAlone) {
  const TemporaryFolder folder;
  const auto saved = [&](const char* name) {
    const auto model = load_model(kFixtures / name, torch::kFloat);
    save_model(folder.path(), *model.decoder, &*model.tokenizer);
    return read_json((folder.path() / "config.json").string());
  };
  const Json config = saved("prisma");
  EXPECT_EQ(config.at("auto_map").at("AutoModelForCausalLM"), "modeling_prism.PrismForCausalLM");
  // As the fixture, whose bits transformers decoded.
  EXPECT_EQ(config.at("word_starts"), read_json((kFixtures / "prisma/config.json").string()).at("word_starts"));
  EXPECT_TRUE(saved("gpt").at("word_starts").is_null());
  const auto code = read_file((folder.path() / "modeling_prism.py").string());
  EXPECT_EQ(code, read_file((fs::path(PRISM_SOURCE_DIR) / "prism/checkpoint/huggingface/modeling_prism.py").string()));
  EXPECT_FALSE(read_file((folder.path() / "configuration_prism.py").string()).empty());
}

}  // namespace
}  // namespace prism
