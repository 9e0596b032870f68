// Gates within gates, grafted onto a trained model.
#include "prism/checkpoint/graft.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "prism/checkpoint/model_folder.h"
#include "tests/core/message_of.h"
#include "tests/core/temporary_folder.h"
#include "tests/data/byte_tokenizer.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

ModelConfig config_with(const std::string& kind, int64_t middle = -1) {
  ModelConfig config;
  config.vocab_size = kEnd + 1;
  config.d_model = 48;
  config.context = 64;
  config.schedule = "4x3";
  config.ffn_width = 40;
  config.mirror_middle = middle;
  config.init_std = 0.3;
  config.each.ffn.kind = kind;
  expand_shorthand(config);
  complete(config);
  return config;
}

Decoder model_of(const ModelConfig& config) {
  Decoder decoder(config);
  decoder->initialise(3);
  return decoder;
}

TEST(Graft, OpensItsGates) {
  EXPECT_DOUBLE_EQ(kOpenGate / (1 + std::exp(-kOpenGate)), 1);
}

TEST(Graft, ComputesWhatTheModelComputes) {
  const torch::NoGradGuard no_gradients;
  const auto tokens = torch::arange(60).view({2, 30});
  for (const int64_t middle : {-1, 1}) {
    const auto model = model_of(config_with("swiglu", middle));
    const auto config = graft_config(model->config());
    const Decoder grafted(config);
    copy_grafted(*model, *grafted);
    const auto before = model->head.logits(model(tokens, {})), after = grafted->head.logits(grafted(tokens, {}));
    EXPECT_LT((after - before).abs().max().item<double>(), 1e-4 * before.abs().max().item<double>()) << middle;
    // A gate that is not open would show.
    const auto& bias = find_weight(grafted->weights(), "blocks_0.mlp.bias").tensor();
    bias.fill_(1);
    EXPECT_GT((grafted->head.logits(grafted(tokens, {})) - before).abs().max().item<double>(),
              1e-2 * before.abs().max().item<double>());
  }
}

TEST(Graft, LeavesGradientsInTheNewGates) {
  const auto model = model_of(config_with("swiglu"));
  const Decoder grafted(graft_config(model->config()));
  copy_grafted(*model, *grafted);
  const auto tokens = torch::arange(60).view({2, 30});
  grafted->head.loss(grafted(tokens, {}), tokens.roll(-1, 1)).backward();
  for (const auto& entry : grafted->weights())
    for (const auto& tensor : entry.tensors) {
      if (tensor.name.find("inner_gate_proj") == std::string::npos) continue;
      EXPECT_GT(tensor.of(entry.weight.tensor().grad()).abs().max().item<double>(), 1e-6) << tensor.name;
    }
}

TEST(Graft, IsSavedAndLoadedWithItsBias) {
  const auto model = model_of(config_with("swiglu", 1));
  const Decoder grafted(graft_config(model->config()));
  copy_grafted(*model, *grafted);
  const TemporaryFolder folder;
  const auto tokenizer = byte_tokenizer();
  save_model(folder.path(), *grafted, &tokenizer);
  const auto loaded = load_model(folder.path(), torch::kFloat);
  EXPECT_TRUE(loaded.decoder->config().layers[0].ffn.gate_bias);
  const torch::NoGradGuard no_gradients;
  const auto tokens = torch::arange(30).unsqueeze(0);
  EXPECT_TRUE(torch::equal(loaded.decoder(tokens, {}), grafted(tokens, {})));
}

TEST(Graft, NeedsGatesToGraftOnto) {
  EXPECT_REFUSED(graft_config(config_with("relu")), "expected a model with feed-forward parts of kind swiglu");
  EXPECT_REFUSED(graft_config(config_with("g2lu")), "found none in its layers");
}

}  // namespace
}  // namespace prism
