#include "prism/training/optimizer/learning_rate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "tests/core/message_of.h"

namespace prism {
namespace {

LearningRate rate(const std::string& schedule) {
  return {.schedule = schedule,
          .peak = 1e-3,
          .final_share = 0.1,
          .warmup_tokens = 10,
          .decay_tokens = 20,
          .total_tokens = 100};
}

TEST(LearningRate, RisesLinearlyToThePeakAndEndsAtItsShare) {
  for (const char* schedule : {"cosine", "linear", "wsd"}) {
    EXPECT_DOUBLE_EQ(rate(schedule).at(5), 5e-4) << schedule;
    EXPECT_DOUBLE_EQ(rate(schedule).at(10), 1e-3) << schedule;
    EXPECT_NEAR(rate(schedule).at(100), 1e-4, 1e-12) << schedule;
    EXPECT_NEAR(rate(schedule).at(120), 1e-4, 1e-12) << schedule;
  }
}

TEST(LearningRate, FallsAlongItsCurve) {
  EXPECT_NEAR(rate("cosine").at(32.5), 1e-4 + 9e-4 * (1 + std::sqrt(0.5)) / 2, 1e-12);
  EXPECT_NEAR(rate("cosine").at(55), 5.5e-4, 1e-12);
  EXPECT_NEAR(rate("linear").at(32.5), 1e-3 - 9e-4 / 4, 1e-12);
  EXPECT_DOUBLE_EQ(rate("wsd").at(80), 1e-3);
  EXPECT_NEAR(rate("wsd").at(85), 1e-3 - 9e-4 / 4, 1e-12);
}

TEST(LearningRate, OfAWarmUpAloneOnlyRises) {
  auto whole = rate("cosine");
  whole.warmup_tokens = 100;
  EXPECT_DOUBLE_EQ(whole.at(50), 5e-4);
  EXPECT_DOUBLE_EQ(whole.at(100), 1e-3);
}

TEST(LearningRate, WithoutADecayStaysAtThePeak) {
  auto stable = rate("wsd");
  stable.decay_tokens = 0;
  EXPECT_DOUBLE_EQ(stable.at(100), 1e-3);
}

TEST(LearningRate, DecaysAfterTheWarmUpAlsoWhereTheyMeet) {
  auto short_run = rate("wsd");
  short_run.decay_tokens = 95;
  EXPECT_NEAR(short_run.at(55), 5.5e-4, 1e-12);
}

TEST(LearningRate, OfAnUnknownScheduleIsRefused) {
  EXPECT_REFUSED(check_learning_rate_schedule("cosin"), "did you mean cosine?");
}

}  // namespace
}  // namespace prism
