// Layers that share the projections of their feed-forward parts: their configuration, weights, costs and gradients.
#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "prism/models/cost.h"
#include "prism/models/decoder.h"
#include "tests/core/message_of.h"
#include "tests/layers/weights.h"

namespace prism {
namespace {

struct Mirrored {
  std::string schedule = "2x5", kind = "g2lu", order = "mirror";
  int64_t middle = 1, d_model = 16, width = 24, vocab_size = 11;
  std::string kv_schedule = {};
};

ModelConfig mirrored_config(const Mirrored& wanted) {
  ModelConfig config;
  config.vocab_size = wanted.vocab_size;
  config.d_model = wanted.d_model;
  config.context = 8;
  config.schedule = wanted.schedule;
  config.kv_schedule = wanted.kv_schedule;
  config.ffn_width = wanted.width;
  config.each.ffn.kind = wanted.kind;
  config.mirror_middle = wanted.middle;
  config.mirror_order = wanted.order;
  config.allow_any = true;
  expand_shorthand(config);
  complete(config);
  return config;
}

std::vector<int64_t> owners_of(const ModelConfig& config) {
  std::vector<int64_t> owners;
  for (const auto& layer : config.layers) owners.push_back(layer.mirror_of);
  return owners;
}

TEST(Mirror, PairsLayersAroundTheMiddle) {
  using Owners = std::vector<int64_t>;
  EXPECT_EQ(owners_of(mirrored_config({})), (Owners{-1, -1, -1, 1, 0}));
  EXPECT_EQ(owners_of(mirrored_config({.order = "same"})), (Owners{-1, -1, -1, 0, 1}));
  EXPECT_EQ(owners_of(mirrored_config({.middle = 3})), (Owners{-1, -1, -1, -1, 0}));
  EXPECT_EQ(owners_of(mirrored_config({.schedule = "2x4", .middle = 0})), (Owners{-1, -1, 1, 0}));
  EXPECT_EQ(owners_of(mirrored_config({.middle = -1})), (Owners{-1, -1, -1, -1, -1}));
}

TEST(Mirror, RefusesWhatCannotBeShared) {
  const auto refused = [](const Mirrored& wanted) { return message_of([&] { mirrored_config(wanted); }); };
  EXPECT_CONTAINS(refused({.middle = 2}), "model.mirror_middle: expected as many layers before the middle as after it");
  EXPECT_CONTAINS(refused({.middle = 7}),
                  "model.mirror_middle: expected a number of layers below 4, or -1 for none that share; found 7");
  EXPECT_CONTAINS(refused({.middle = -2}), "found -2");
  EXPECT_CONTAINS(refused({.order = "up"}), "model.mirror_order: expected mirror or same; found \"up\"");
  EXPECT_CONTAINS(refused({.order = "same", .middle = -1}), "model.mirror_order: expected a number of layers");
  const auto changed = [](auto change) {
    auto config = mirrored_config({});
    change(config.layers);
    return message_of([&] { complete(config); });
  };
  using Layers = std::vector<LayerConfig>;
  EXPECT_CONTAINS(changed([](Layers& l) { l[3].mirror_of = 3; }), "layer 3: expected mirror_of -1 or an earlier layer");
  EXPECT_CONTAINS(changed([](Layers& l) { l[2].mirror_of = 4; }), "layer 2: expected mirror_of -1 or an earlier layer");
  EXPECT_CONTAINS(changed([](Layers& l) { l[2].mirror_of = -3; }), "found -3");
  EXPECT_CONTAINS(changed([](Layers& l) { l[4].mirror_of = 3; }), "found layer 3, which uses those of layer 1");
  EXPECT_CONTAINS(changed([](Layers& l) { l[4].ffn.width = 25; }), "layer 4: expected the ffn.kind and ffn.width of");
  EXPECT_CONTAINS(changed([](Layers& l) { l[3].ffn.kind = "swiglu"; }), "found swiglu of width 24");
  EXPECT_CONTAINS(changed([](Layers& l) { l[0].ffn = l[4].ffn = {.kind = "relu", .width = 24, .depth = 2}; }),
                  "layer 4: expected ffn.depth 1");
}

TEST(Mirror, GivesTheParametersOfThePapersModels) {
  const auto parameters = [](int64_t d_model, const std::string& schedule, const std::string& kv, int64_t width,
                             const std::string& kind = "g2lu", int64_t middle = 1) {
    return model_cost(mirrored_config({.schedule = schedule,
                                       .kind = kind,
                                       .middle = middle,
                                       .d_model = d_model,
                                       .width = width,
                                       .vocab_size = 32000,
                                       .kv_schedule = kv}))
        .parameters;
  };
  EXPECT_EQ(parameters(384, "6x57", "/3", 192), 47'426'688);
  EXPECT_EQ(parameters(384, "6x57", "/3", 256), 51'653'760);
  EXPECT_EQ(parameters(384, "6x57", "/3", 256, "swiglu", -1), 51'555'456);
  EXPECT_EQ(parameters(1024, "16x41", "/4", 1707), 357'080'064);
  EXPECT_EQ(357'080'064 - 32000 * 1024, 324'312'064);
}

TEST(Mirror, HasAStorageForEachWeightAndCountsBothUses) {
  for (const char* kind : {"swiglu", "g2lu", "gelu", "relu"}) {
    const Decoder shared(mirrored_config({.kind = kind})), apart(mirrored_config({.kind = kind, .middle = -1}));
    std::set<const void*> storages;
    int64_t values = 0;
    for (const auto& entry : shared->weights())
      if (storages.insert(entry.weight.tensor().const_data_ptr()).second) values += entry.weight.numel();
    const auto cost = model_cost(*shared), without = model_cost(*apart);
    EXPECT_EQ(storages.size(), shared->weights().size());
    EXPECT_EQ(values, cost.parameters);
    EXPECT_EQ(without.parameters - cost.parameters, 2 * 2 * 16 * 24) << kind;
    EXPECT_EQ(cost.flops_per_token, without.flops_per_token);
    for (size_t i = 0; i < 5; ++i) {
      EXPECT_EQ(cost.layers[i].flops_per_token, without.layers[i].flops_per_token) << kind << " " << i;
      EXPECT_EQ(without.layers[i].parameters - cost.layers[i].parameters, i > 2 ? 2 * 16 * 24 : 0) << kind << " " << i;
    }
  }
}

TEST(Mirror, HasTheSumOfTheGradientsOfBothUsesAndTheSameOnesIfActivationsAreRecomputed) {
  for (const char* kind : {"swiglu", "g2lu", "gelu"}) {
    Decoder shared(mirrored_config({.schedule = "2x2,4x1,2x2", .kind = kind}));
    auto config = shared->config();
    for (auto& layer : config.layers) layer.mirror_of = -1;
    Decoder apart(config), again(shared->config());
    const auto convert = [](Decoder& decoder) {
      convert_weights(decoder->weights(), torch::kDouble);
      decoder->set_compute_type(torch::kDouble);
    };
    convert(shared);
    convert(apart);
    convert(again);
    shared->initialise(3);
    again->initialise(3);
    again->set_recompute(true);
    // The same function with weights of their own. A name in files: that of the owner or of the user.
    const auto tensor_of = [](const Decoder& decoder, const std::string& name) {
      for (const auto& entry : decoder->weights())
        for (const auto& tensor : entry.tensors)
          if (tensor.name == name)
            return std::pair{tensor.of(entry.weight.tensor()), tensor.of(entry.weight.tensor().grad())};
      return std::pair{torch::Tensor(), torch::Tensor()};
    };
    const auto name_in_owner = [&](std::string name) {
      if (name.find("up_proj") == std::string::npos && name.find("down_proj") == std::string::npos) return name;
      for (const auto& [user, owner] : {std::pair{".3.", ".1."}, {".4.", ".0."}})
        if (const size_t at = name.find(user); at != std::string::npos) name.replace(at, 3, owner);
      return name;
    };
    std::vector<std::string> names;
    {
      const torch::NoGradGuard no_gradients;
      for (const auto& entry : apart->weights())
        for (const auto& tensor : entry.tensors) {
          names.push_back(tensor.name);
          tensor.of(entry.weight.tensor()).copy_(tensor_of(shared, name_in_owner(tensor.name)).first);
        }
    }
    torch::manual_seed(4);
    const auto tokens = torch::randint(0, 11, {3, 8}, torch::kLong);
    const auto run = [&](Decoder& decoder) {
      const auto loss = decoder->head.loss(decoder(tokens, ForwardContext{}), tokens.roll(-1, 1));
      loss.backward();
      return loss.item<double>();
    };
    const double loss = run(shared);
    EXPECT_NEAR(run(apart), loss, 1e-12);
    EXPECT_EQ(run(again), loss);
    std::map<std::string, torch::Tensor> sums;
    for (const auto& name : names) {
      auto& sum = sums[name_in_owner(name)];
      const auto gradient = tensor_of(apart, name).second;
      sum = sum.defined() ? sum + gradient : gradient;
    }
    for (const auto& [name, sum] : sums) {
      const auto found = tensor_of(shared, name).second;
      EXPECT_TRUE(torch::allclose(found, sum, 1e-9, 1e-13)) << kind << " " << name;
      EXPECT_TRUE(torch::equal(tensor_of(again, name).second, found)) << kind << " " << name;
    }
  }
}

}  // namespace
}  // namespace prism
