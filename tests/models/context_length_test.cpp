// Contexts that are lengthened by scaling rotary positions.
#include "prism/attention/context_length.h"

#include <gtest/gtest.h>

#include "prism/models/model_config.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

RotaryConfig lengthened(RotaryConfig rotary, int64_t before, const ContextOptions& options) {
  lengthen(rotary, before, options);
  return rotary;
}

TEST(ContextLength, ScalesPositionsFromTheUnscaledContext) {
  const auto yarn = lengthened({}, 8192, {.context = 32768, .rope_scaling = "yarn"});
  EXPECT_EQ(yarn.scaling, "yarn");
  EXPECT_EQ(yarn.factor, 4);
  EXPECT_EQ(yarn.original_context, 8192);
  // A context that is lengthened already is lengthened from the same beginning.
  const auto further = lengthened(yarn, 32768, {.context = 65536, .rope_scaling = "yarn"});
  EXPECT_EQ(further, lengthened({}, 8192, {.context = 65536, .rope_scaling = "yarn"}));
  RotaryConfig halved;  // as files of linear models have it, without the original context
  halved.scaling = "linear";
  halved.factor = 2;
  EXPECT_EQ(lengthened(halved, 4096, {.context = 8192, .rope_scaling = "linear"}).factor, 4);
  const auto linear = rotary_angles(lengthened({}, 100, {.context = 150, .rope_scaling = "linear"}), 8);
  EXPECT_TRUE(torch::allclose(linear, rotary_angles({}, 8) / 1.5));
  RotaryConfig same;
  same.scaling = "linear";
  same.factor = 2;
  EXPECT_EQ(lengthened({}, 4096, {.context = 8192, .rope_scaling = "linear"}), same) << "as a file has it";
}

TEST(ContextLength, RefusesWhatAScalingIsNotMadeFor) {
  const auto refused = [](const RotaryConfig& rotary, int64_t context, const char* scaling) {
    return message_of([&] { lengthened(rotary, 1000, {.context = context, .rope_scaling = scaling}); });
  };
  EXPECT_CONTAINS(refused({}, 32001, "yarn"), "expected at most 32000 tokens, 32 times the model's");
  EXPECT_CONTAINS(refused({}, 16001, "linear"), "expected at most 16000 tokens");
  EXPECT_CONTAINS(refused({}, 1000, "yarn"), "expected a --context above 1000");
  EXPECT_CONTAINS(refused({}, 2000, "dynamic"), "expected yarn or linear; found dynamic");
  RotaryConfig llama;
  llama.scaling = "llama3";
  EXPECT_CONTAINS(refused(llama, 2000, "yarn"), "found llama3; leave out");
  RotaryConfig divided;
  divided.factors = {1, 2};
  EXPECT_CONTAINS(refused(divided, 2000, "yarn"), "found divisors of the angles");
}

TEST(ContextLength, OfAModelIsThatOfAllItsLayersThatTurn) {
  ModelConfig config;
  config.context = 64;
  config.vocab_size = 32;
  config.ffn_width = 8;
  config.schedule = "2x3";
  config.d_model = 16;
  expand_shorthand(config);
  complete(config);
  config.layers[1].rotary.kind = "none";
  auto longer = config;
  set_context(longer, {.context = 256, .rope_scaling = "yarn"});
  EXPECT_EQ(longer.context, 256);
  EXPECT_EQ(longer.layers[0].rotary.factor, 4);
  EXPECT_EQ(longer.layers[2].rotary.factor, 4);
  EXPECT_EQ(longer.layers[1].rotary.scaling, "none");
  auto shorter = config;
  set_context(shorter, {.context = 32});
  EXPECT_EQ(shorter.context, 32);
  EXPECT_EQ(shorter.layers[0].rotary.scaling, "none");
  EXPECT_REFUSED(set_context(config, {.context = 65}), "expected at most 64 tokens, the model's context; found 65");
  for (auto& layer : config.layers) layer.rotary.kind = "none";
  EXPECT_REFUSED(set_context(config, {.context = 65}), "found 65; lower it.");
  EXPECT_REFUSED(set_context(config, {.context = 256, .rope_scaling = "yarn"}), "expected a model with rotary");
  config.learned_positions = true;
  EXPECT_REFUSED(set_context(config, {.context = 32}), "for which the model has learned positions");
}

}  // namespace
}  // namespace prism
