#include "prism/models/cost.h"

#include <gtest/gtest.h>

#include "prism/models/decoder.h"
#include "tests/models/configs.h"

namespace prism {
namespace {

ModelConfig paper_size(const std::string& schedule, int64_t d_model, int64_t ffn_width) {
  auto config = config_of(schedule, d_model, 50304, ffn_width);
  config.context = 1024;
  return config;
}

TEST(ModelCost, GivesThePapersSizes) {
  EXPECT_NEAR(static_cast<double>(model_cost(paper_size("12x12", 768, 2048)).parameters), 123.6e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(model_cost(paper_size("16x24", 1024, 2730)).parameters), 353.5e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(model_cost(paper_size("16x24", 1536, 4096)).parameters), 756.8e6, 0.05e6);
}

TEST(ModelCost, IsTheSameToTheLastDigitForEveryScheduleOfASize) {
  const auto uniform = model_cost(paper_size("12x12", 768, 2048));
  for (const char* schedule : {"3x2,6x2,8x2,12x6", "3x6,12x6", "6x3,8x3,12x6", "4x3,8x3,12x6", "3x2,8x2,6x2,12x6",
                               "2x1,12x11", "3x3,6x3,12x6", "2x2,3x1,6x1,8x2,12x6"}) {
    const auto cost = model_cost(paper_size(schedule, 768, 2048));
    EXPECT_EQ(cost.parameters, uniform.parameters) << schedule;
    EXPECT_EQ(cost.flops_per_token, uniform.flops_per_token) << schedule;
    EXPECT_EQ(cost.kv_bytes_per_token, uniform.kv_bytes_per_token) << schedule;
  }
}

TEST(ModelCost, CountsWhatTheDecoderHolds) {
  for (const bool tied : {true, false}) {
    auto config = config_of("2x1,4x2");
    config.tied = tied;
    config.layers.back().kv_heads = 2;
    config.layers.back().ffn.width = 30;
    config.layers.front().qk_norm = tied;
    Decoder decoder(config);
    int64_t held = 0;
    for (const auto& entry : decoder->weights()) held += entry.weight.numel();
    EXPECT_EQ(model_cost(config).parameters, held);
  }
}

/// A rung of the ladder: ReLU feed-forward parts, learned positions, no norms unless `norm` sets them.
TEST(Ladder, HasThePapersParameters) {
  // "n_params=23.1M", with and without the norms' gains.
  EXPECT_NEAR(static_cast<double>(model_cost(rung("4x4", 0, "none")).parameters), 23.1e6, 0.05e6);
  EXPECT_NEAR(static_cast<double>(model_cost(rung("4x4", 0, "rms")).parameters), 23.1e6, 0.05e6);
  for (const auto& config : {rung("4x2", 0, "rms"), rung("4x1", 256, "none"), rung("1x1", 0, "none")}) {
    int64_t held = 0;
    for (const auto& entry : Decoder(config)->weights()) held += entry.weight.numel();
    EXPECT_EQ(model_cost(config).parameters, held);
  }
}

TEST(ScheduleCost, IsNothingWhileTheRatioOfKeyHeadsToHeadsStays) {
  for (const char* ratio : {"", "/1", "/2"})
    EXPECT_TRUE(schedule_cost(grouped("2x1,4x2,8x2", ratio)).neutral()) << ratio;
  EXPECT_EQ(grouped("2x1,4x2", "/2").layers[2].kv_heads, 2);
  EXPECT_EQ(describe(schedule_cost(grouped("2x1,4x2,8x2", "/2"))).substr(0, 8), "neutral:");
}

TEST(ScheduleCost, CountsTheScoresOfHeadBudgets) {
  auto config = config_of("2x1,4x2");
  for (auto& layer : config.layers) layer.budget.kind = "learned";
  EXPECT_EQ(schedule_cost(config).parameters, -2 * (48 + 1)) << "two heads less to score in one layer";
}

TEST(ScheduleCost, IsTheKeysAndValuesThatTheRatioAdds) {
  // The wide layer has one key/value head for each of its 2 heads, the last layer one for every 4 of its 8: keys are 96
  // wide against 24.
  const auto cost = schedule_cost(grouped("2x1,8x2", "2x3"));
  EXPECT_EQ(cost.parameters, 2 * 96 * (96 - 24));
  EXPECT_EQ(cost.flops_per_token, 2 * 2 * 96 * (96 - 24));
  EXPECT_EQ(cost.kv_bytes_per_token, 2 * 2 * (96 - 24));
  EXPECT_EQ(cost.uniform.parameters, model_cost(grouped("8x3", "2x3")).parameters);
  EXPECT_NE(describe(cost).find("+13.8k parameters (+"), std::string::npos) << describe(cost);
}

}  // namespace
}  // namespace prism
