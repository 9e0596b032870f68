// Decoders whose weights are packed compute what those with values do.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/models/configs.h"

namespace prism {
namespace {

using torch::Tensor;

ModelConfig frozen_config(bool tied) {
  ModelConfig config;
  config.vocab_size = 96;
  config.d_model = 64;
  config.context = 40;
  config.tied = tied;
  config.schedule = "2x1,4x2";
  config.ffn_width = 96;
  config.allow_any = true;
  expand_shorthand(config);
  complete(config);
  return config;
}

/// A decoder whose weights are bfloat16 values, so that packing loses nothing.
Decoder made(const ModelConfig& config) {
  Decoder decoder(config);
  decoder->initialise(3);
  const torch::NoGradGuard no_gradients;
  for (const auto& entry : decoder->weights())
    entry.weight.tensor().copy_(entry.weight.tensor().mul(4).to(torch::kBFloat16));
  decoder->set_compute_type(PackedWeight::prompt_type().value_or(torch::kFloat));
  return decoder;
}

double most(const Tensor& x) {
  return x.to(torch::kDouble).abs().max().item<double>();
}

TEST(FrozenDecoder, ComputesTheSameLossesAndLogits) {
  const torch::NoGradGuard no_gradients;
  for (const bool tied : {true, false}) {
    const auto config = frozen_config(tied);
    const auto plain = made(config), frozen = made(config);
    frozen->freeze();
    const auto tokens = torch::randint(0, config.vocab_size, {2, 17}, torch::kLong);
    const auto expected = plain(tokens, {}), found = frozen(tokens, {});
    EXPECT_LT(most(found - expected), 0.05 * most(expected));
    const auto losses = plain->head.token_losses(expected, tokens), packed = frozen->head.token_losses(found, tokens);
    EXPECT_LT(most(losses - packed), 0.05 * most(losses));
    const auto logits = plain->head.logits(expected), next = frozen->head.logits(found);
    EXPECT_EQ(next.scalar_type(), torch::kFloat);
    EXPECT_LT(most(logits - next), 0.05 * most(logits));
  }
}

TEST(FrozenDecoder, DecodesAsItReads) {
  const torch::NoGradGuard no_gradients;
  const auto config = frozen_config(true);
  const auto decoder = made(config);
  decoder->freeze();
  const auto tokens = torch::randint(0, config.vocab_size, {1, 12}, torch::kLong);
  const auto whole = decoder(tokens, {});
  KvCache cache(config.layers, {.positions = 12, .type = decoder->compute_type()});
  ForwardContext context;
  context.cache = &cache;
  context.rows = {{.sequence = 0, .tokens = 1, .decodes = true}};
  for (int64_t t = 0; t < 12; ++t) {
    const auto step = decoder(tokens.narrow(1, t, 1), context);
    EXPECT_LT(most(step - whole.narrow(1, t, 1)), 0.05 * most(whole)) << t;
  }
}

TEST(FrozenDecoder, GivesASequenceTheSameBitsInEveryBatch) {
  const torch::NoGradGuard no_gradients;
  const auto config = frozen_config(true);
  const auto decoder = made(config);
  decoder->freeze();
  const auto tokens = torch::randint(0, config.vocab_size, {5, 17}, torch::kLong);
  const auto all = decoder(tokens, {});
  for (const int64_t row : {0, 4}) {
    EXPECT_TRUE(torch::equal(decoder(tokens.narrow(0, row, 1), {})[0], all[row])) << row;
  }
}

TEST(FrozenDecoder, RefusesGradientsAndSaving) {
  const auto decoder = made(frozen_config(true));
  decoder->freeze();
  EXPECT_REFUSED(decoder->head.loss(torch::zeros({1, 2, 64}), torch::zeros({1, 2}, torch::kLong)), "found packed ones");
  for (const auto& entry : decoder->weights()) {
    if (entry.products() > 0) EXPECT_REFUSED(entry.weight.tensor(), "--weights float32");
  }
}

}  // namespace
}  // namespace prism
