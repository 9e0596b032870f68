// A weight shared by two layers: it has one entry everywhere, sums the gradients of both uses, and resumes bit for bit.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "prism/checkpoint/model_folder.h"
#include "prism/checkpoint/run_state.h"
#include "prism/checkpoint/weight_map.h"
#include "prism/layers/glu_mlp.h"
#include "prism/models/cost.h"
#include "prism/training/optimizer/optimizer.h"
#include "tests/core/temporary_folder.h"

namespace prism {
namespace {

ModelConfig config() {
  ModelConfig config;
  config.vocab_size = 11;
  config.d_model = 16;
  config.context = 8;
  config.schedule = "2x3";
  config.ffn_width = 24;
  expand_shorthand(config);
  complete(config);
  return config;
}

const GluMlp& mlp_of(const Decoder& decoder, size_t layer) {
  return dynamic_cast<const GluMlp&>(*decoder->blocks[layer]->mlp);
}

/// A decoder whose first and last layers share their down projection and their output projection.
Decoder sharing_decoder() {
  Decoder decoder(config());
  decoder->blocks[2]->attention.out.weight = decoder->blocks[0]->attention.out.weight;
  dynamic_cast<GluMlp&>(*decoder->blocks[2]->mlp).down.weight = mlp_of(decoder, 0).down.weight;
  decoder->initialise(1);
  return decoder;
}

void backward(const Decoder& decoder, uint64_t seed) {
  torch::manual_seed(seed);
  const auto tokens = torch::randint(0, 11, {4, 8}, torch::kLong);
  decoder->head.loss(decoder(tokens, ForwardContext{}), tokens.roll(-1, 1)).backward();
}

TEST(SharedWeight, IsOneEntryInParametersFileAndCostsWhichCountBothProducts) {
  const auto plain = Decoder(config()), sharing = sharing_decoder();
  EXPECT_EQ(sharing->weights().size(), plain->weights().size() - 2);
  std::set<std::string> files;
  for (const auto& tensor : file_tensors(sharing->weights())) EXPECT_TRUE(files.insert(tensor.name).second);
  EXPECT_TRUE(files.contains("model.layers.0.mlp.down_proj.weight"));
  EXPECT_FALSE(files.contains("model.layers.2.mlp.down_proj.weight"));
  const auto before = model_cost(*plain), after = model_cost(*sharing);
  const int64_t shared = 16 * 16 + 16 * 24;
  EXPECT_EQ(after.parameters, before.parameters - shared);
  EXPECT_EQ(after.layers[2].parameters, before.layers[2].parameters - shared);
  EXPECT_EQ(after.flops_per_token, before.flops_per_token);
  EXPECT_EQ(after.layers[2].flops_per_token, before.layers[2].flops_per_token);
}

TEST(SharedWeight, HasTheSumOfTheGradientsOfItsUses) {
  const auto sharing = sharing_decoder();
  Decoder apart(config());
  apart->initialise(1);
  {
    // The same function with separate weights.
    const torch::NoGradGuard no_gradients;
    apart->blocks[2]->attention.out.weight.tensor().copy_(sharing->blocks[0]->attention.out.weight.tensor());
    mlp_of(apart, 2).down.weight.tensor().copy_(mlp_of(sharing, 0).down.weight.tensor());
  }
  backward(sharing, 5);
  backward(apart, 5);
  const auto gradient = [](const Linear& linear) { return linear.weight.tensor().grad(); };
  EXPECT_TRUE(torch::allclose(gradient(mlp_of(sharing, 0).down),
                              gradient(mlp_of(apart, 0).down) + gradient(mlp_of(apart, 2).down), 1e-5, 1e-7));
  EXPECT_TRUE(torch::allclose(gradient(sharing->blocks[2]->attention.out),
                              gradient(apart->blocks[0]->attention.out) + gradient(apart->blocks[2]->attention.out),
                              1e-5, 1e-7));
  EXPECT_FALSE(torch::allclose(gradient(mlp_of(sharing, 0).down), gradient(mlp_of(apart, 0).down), 1e-5, 1e-7));
}

TEST(SharedWeight, IsSteppedOnceAndResumesBitForBitWithEveryOptimizer) {
  for (const char* kind : {"adamw", "muon", "sgd"}) {
    const TemporaryFolder temporary;
    const OptimizerOptions options{.kind = kind};
    const auto make = [&](const Decoder& decoder) {
      return make_optimizer(decoder->weights(), options, torch::kFloat);
    };
    const auto step = [](const Decoder& decoder, Optimizer& optimizer, uint64_t seed) {
      backward(decoder, seed);
      optimizer.step(0.01, optimizer.gradient_norm());
    };
    const auto whole = sharing_decoder();
    auto optimizer = make(whole);
    std::set<std::string> state;
    for (const auto& tensor : optimizer.state()) EXPECT_TRUE(state.insert(tensor.name).second) << tensor.name;
    for (const auto& name : state)
      EXPECT_FALSE(name.starts_with("blocks_2.mlp.down") || name.starts_with("blocks_2.attention.out")) << name;
    for (const uint64_t seed : {1, 2}) step(whole, optimizer, seed);
    save_model(temporary.path(), *whole, nullptr);
    save_run_state(temporary.path(), {}, optimizer.state());
    for (const uint64_t seed : {3, 4}) step(whole, optimizer, seed);

    const auto resumed = sharing_decoder();
    auto again = make(resumed);
    load_weights(resumed->weights(), temporary.path());
    load_optimizer(temporary.path(), again.state());
    again.set_steps(2);
    for (const uint64_t seed : {3, 4}) step(resumed, again, seed);
    const auto expected = whole->weights(), found = resumed->weights();
    for (size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(torch::equal(found[i].weight.tensor(), expected[i].weight.tensor())) << kind << " " << found[i].name;
    EXPECT_TRUE(resumed->blocks[2]->attention.out.weight == resumed->blocks[0]->attention.out.weight);
  }
}

TEST(SharedWeight, DecaysOnceAndFollowsTheSumOfItsGradients) {
  // Two models with the same initial weights: one shares a weight, the other has the summed gradient in its place.
  for (const char* kind : {"adamw", "muon", "sgd"}) {
    OptimizerOptions options{.kind = kind, .clip = 0};
    options.adamw.weight_decay = options.muon.weight_decay = options.sgd.weight_decay = 0.5;
    const auto sharing = sharing_decoder();
    Decoder oracle(config());
    oracle->initialise(1);
    backward(sharing, 5);
    const auto& shared = mlp_of(sharing, 0).down.weight.tensor();
    const auto& expected = mlp_of(oracle, 0).down.weight.tensor();
    for (const auto& entry : oracle->weights())
      entry.weight.tensor().mutable_grad() = torch::zeros_like(entry.weight.tensor());
    {
      const torch::NoGradGuard no_gradients;
      expected.copy_(shared);
      expected.mutable_grad().copy_(shared.grad());
    }
    for (const auto& decoder : {sharing, oracle}) {
      auto optimizer = make_optimizer(decoder->weights(), options, torch::kFloat);
      optimizer.step(0.01, optimizer.gradient_norm());
    }
    EXPECT_TRUE(torch::equal(shared, expected)) << kind;
  }
}

}  // namespace
}  // namespace prism
