// Probes of the residual stream and of feed-forward units.
#include "prism/analysis/activations.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/layers/relu_mlp.h"
#include "tests/generation/tiny_model.h"

namespace prism {
namespace {

Decoder relu_decoder() {
  ModelConfig config;
  config.vocab_size = kTinyVocab;
  config.d_model = 16;
  config.context = 32;
  config.schedule = "2x2";
  config.ffn_width = 10;
  config.each.ffn = {.kind = "relu", .width = 0, .depth = 2, .bias = true};
  config.init_std = 0.3;
  return make_decoder(config);
}

TEST(Activations, AreRootMeanSquaresAndSharesOfUnitsThatNeverAnswer) {
  const torch::NoGradGuard no_gradients;
  auto decoder = relu_decoder();
  // Three units of the second hidden layer of layer 1 can never be positive.
  auto& mlp = dynamic_cast<ReluMlp&>(*decoder->blocks[1]->mlp);
  mlp.inner[1].weight.tensor().narrow(0, 4, 3).zero_();
  mlp.inner[1].bias.tensor().narrow(0, 4, 3).fill_(-1);
  mlp.inner[0].bias.tensor().fill_(10);  // all units of its first hidden layer are positive
  ActivationProbe probe;
  ForwardContext context;
  context.probe = &probe;
  torch::manual_seed(1);
  double squares = 0;
  for (int pass = 0; pass < 2; ++pass) {
    const auto tokens = torch::randint(kTinyVocab, {2, 20}, torch::kLong);
    squares += decoder->embedding(tokens).square().mean().item<double>() / 2;
    decoder(tokens, context);
  }
  const auto found = probe.result();
  ASSERT_EQ(found.size(), 3u);
  EXPECT_NEAR(found[0].residual_rms, std::sqrt(squares), 1e-6);
  EXPECT_GT(found[2].residual_rms, found[0].residual_rms);
  EXPECT_TRUE(found[2].dead_units.empty());
  EXPECT_EQ(found[1].dead_units[0], 0);
  EXPECT_GE(found[1].dead_units[1], 0.3);
  EXPECT_LT(found[0].dead_units[1], 1);
}

TEST(Activations, StopBeingFiniteWhereAWeightIsNot) {
  const torch::NoGradGuard no_gradients;
  const auto place_with = [](const std::function<void(Decoder&)>& harm) {
    auto decoder = relu_decoder();
    harm(decoder);
    FiniteProbe probe(decoder->config().layers.size());
    ForwardContext context;
    context.probe = &probe;
    decoder(torch::randint(kTinyVocab, {1, 8}, torch::kLong), context);
    return probe.place();
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(place_with([](Decoder&) {}), "");
  EXPECT_EQ(place_with([&](Decoder& d) { d->embedding.weight.tensor().fill_(nan); }),
            "the residual stream before layer 0");
  EXPECT_EQ(place_with([&](Decoder& d) { d->blocks[1]->attention.qkv.weight.tensor()[0].fill_(nan); }),
            "the queries of layer 1");
  EXPECT_EQ(
      place_with([&](Decoder& d) { dynamic_cast<ReluMlp&>(*d->blocks[0]->mlp).inner[0].bias.tensor().fill_(nan); }),
      "the feed-forward part of layer 0");
  EXPECT_EQ(place_with([&](Decoder& d) { dynamic_cast<ReluMlp&>(*d->blocks[1]->mlp).down.bias.tensor().fill_(nan); }),
            "the residual stream before the LM head");
}

}  // namespace
}  // namespace prism
