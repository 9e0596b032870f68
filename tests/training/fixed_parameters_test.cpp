// Parameters that training leaves as they are, and embeddings of other models.
#include "prism/training/fixed_parameters.h"

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/generation/tiny_model.h"
#include "tests/models/configs.h"
#include "tests/training/tiny_run.h"

namespace prism {
namespace {

class FixedParameters : public TinyRun {
 protected:
  /// The tensors of the last run's model.
  std::map<std::string, torch::Tensor> tensors() const {
    std::map<std::string, torch::Tensor> found;
    for (const auto& [name, tensor] : file_tensors(decoder_->weights())) found[name] = tensor.detach().clone();
    return found;
  }
  /// The tensors before training.
  std::map<std::string, torch::Tensor> initial(const Recipe& r) {
    auto none = r;
    none.train.learning_rate = 0;
    train(none, "initial");
    return tensors();
  }
  /// Names of the tensors that training changed.
  std::vector<std::string> changed(const Recipe& r, const std::string& name) {
    const auto before = initial(r);
    train(r, name);
    std::vector<std::string> names;
    for (const auto& [tensor, value] : tensors())
      if (!torch::equal(value, before.at(tensor))) names.push_back(tensor);
    std::filesystem::remove_all(folder_.path() / "initial");
    return names;
  }
};

TEST_F(FixedParameters, KeepTheirValuesUnderEveryOptimizer) {
  for (const char* optimizer : {"adamw", "muon", "sgd"}) {
    auto r = recipe();
    r.train.optimizer_options.kind = optimizer;
    const auto all = changed(r, std::string("all-") + optimizer);
    EXPECT_EQ(all.size(), tensors().size());
    // Whole weights, parts of fused ones, gains.
    r.train.fixed = {"model.embed_tokens.weight", "*.k_proj.weight", "model.layers.1.mlp.up_proj.weight", "*norm*"};
    auto left = all;
    std::erase_if(left, [](const std::string& name) {
      return name.find("embed") != std::string::npos || name.find("k_proj") != std::string::npos ||
             name.find("norm") != std::string::npos || name == "model.layers.1.mlp.up_proj.weight";
    });
    EXPECT_EQ(changed(r, std::string("fixed-") + optimizer), left) << optimizer;
  }
}

TEST_F(FixedParameters, ChangeNothingForTheOthersInTheFirstStep) {
  // Plain SGD without clipping moves each weight by its own gradient alone.
  auto r = recipe();
  r.train.optimizer_options = {.kind = "sgd", .clip = 0, .sgd = {.momentum = 0}};
  r.train.tokens = r.train.batch_rows * kContext;
  r.train.warmup_share = 0;
  train(r, "all");
  const auto all = tensors();
  r.train.fixed = {"*.q_proj.weight", "*.gate_proj.weight", "*.down_proj.weight"};
  train(r, "fixed");
  for (const auto& [name, value] : tensors()) {
    const bool is_fixed = name.find("q_proj") != std::string::npos || name.find("gate_proj") != std::string::npos ||
                          name.find("down_proj") != std::string::npos;
    EXPECT_EQ(torch::equal(value, all.at(name)), !is_fixed) << name;
  }
}

TEST_F(FixedParameters, HaveNeitherGradientsNorMoments) {
  Decoder decoder(config_of("2x2", 16, 11, 24));
  decoder->initialise(1);
  fix_parameters(decoder->weights(), {"model.embed_tokens.weight", "*.0.self_attn.q_proj.weight"});
  const auto tokens = torch::arange(8).unsqueeze(0);
  decoder->head.loss(decoder(tokens, {}), tokens.flip(1)).backward();
  EXPECT_FALSE(decoder->embedding.weight.tensor().grad().defined());
  std::vector<std::string> names;
  auto optimizer = make_optimizer(decoder->weights(), {.kind = "muon"}, torch::kFloat);
  for (const auto& [name, tensor] : optimizer.state()) {
    EXPECT_EQ(name.find("embed"), std::string::npos) << name;
    EXPECT_EQ(name.find("layers.0.self_attn.q_proj"), std::string::npos) << name;
    names.push_back(name);
  }
  EXPECT_EQ(std::count(names.begin(), names.end(), "model.layers.0.self_attn.k_proj.weight.momentum"), 1);
  EXPECT_EQ(std::count(names.begin(), names.end(), "blocks_1.attention.qkv.weight.momentum"), 1);
}

TEST_F(FixedParameters, LetRecomputedLayersTrain) {
  auto r = recipe();
  r.train.fixed = {"model.embed_tokens.weight"};
  const auto losses = values(train(r, "kept"), "train", "loss");
  EXPECT_LT(losses.back(), losses.front());
  r.train.recompute = true;
  EXPECT_EQ(values(train(r, "recomputed"), "train", "loss"), losses);
}

TEST_F(FixedParameters, ResumeBitForBit) {
  auto r = recipe();
  r.train.fixed = {"model.embed_tokens.weight", "*.gate_proj.weight"};
  expect_resumes(r, {"loss", "grad_norm"});
}

TEST_F(FixedParameters, RefusePatternsThatMatchNothingOrAll) {
  auto r = recipe();
  r.train.fixed = {"model.embed_tokens"};
  EXPECT_REFUSED(train(r, "none"), "found \"model.embed_tokens\", which matches none");
  r.train.fixed = {"*"};
  EXPECT_REFUSED(train(r, "all"), "train.fixed: expected patterns that leave a parameter to train");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "all"));
}

TEST_F(FixedParameters, MayBeTheEmbeddingOfAnotherModel) {
  tiny_tokenizer().save(folder_.path() / "data/tokenizer.json");
  auto r = recipe();
  r.model.vocab_size = kTinyVocab;
  train(r, "other");
  const auto other = tensors();
  auto second = r;
  second.seed = 2;
  second.model.layers.pop_back();
  second.init_embedding = (folder_.path() / "other").string();
  second.train.fixed = {"model.embed_tokens.weight"};
  train(second, "second");
  const auto after = tensors();
  EXPECT_TRUE(torch::equal(after.at("model.embed_tokens.weight"), other.at("model.embed_tokens.weight")));
  EXPECT_FALSE(
      torch::equal(after.at("model.layers.0.mlp.up_proj.weight"), other.at("model.layers.0.mlp.up_proj.weight")));

  const auto refused = [&](auto change) {
    auto wrong = second;
    change(wrong);
    return message_of([&] { train(wrong, "wrong"); });
  };
  EXPECT_CONTAINS(refused([](Recipe& w) { w.model.d_model = 32; }), "init_embedding: expected an embedding of 259");
  EXPECT_CONTAINS(refused([](Recipe& w) { w.model.vocab_size = 300; }), "init_embedding: expected an embedding of 300");
  EXPECT_CONTAINS(refused([](Recipe& w) { w.init = w.init_embedding; }), "expected init or init_embedding; found both");
  EXPECT_CONTAINS(refused([](Recipe& w) { w.init_embedding = "nowhere"; }), "found nothing");
  tiny_tokenizer(/*end_of_text=*/false).save(folder_.path() / "data/tokenizer.json");
  EXPECT_CONTAINS(refused([](Recipe&) {}), "init_embedding: expected a model with the tokenizer of the data");
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "wrong"));
}

}  // namespace
}  // namespace prism
