#include "prism/attention/schedule_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/core/message_of.h"

namespace prism {
namespace {

std::vector<std::string> proposed(const ScheduleSpace& space) {
  std::vector<std::string> texts;
  for (const auto& schedule : propose_schedules(space)) texts.push_back(format_head_schedule(schedule));
  return texts;
}

TEST(ProposeSchedules, FindsThePapersScheduleAndThatOfItsMediumSize) {
  const auto small = proposed({.d_model = 768, .layers = 12, .base_heads = 12});
  EXPECT_NE(std::find(small.begin(), small.end(), "3x2,6x2,8x2,12x6"), small.end());
  EXPECT_NE(std::find(small.begin(), small.end(), "3x3,6x3,12x6"), small.end());
  const auto medium = proposed({.d_model = 1024, .layers = 24, .base_heads = 16});
  EXPECT_NE(std::find(medium.begin(), medium.end(), "4x6,8x6,16x12"), medium.end());
}

TEST(ProposeSchedules, KeepsTheRulesAndProposesEachOnce) {
  const auto schedules = propose_schedules({.d_model = 192, .layers = 12, .base_heads = 12});
  std::set<HeadSchedule> once(schedules.begin(), schedules.end());
  EXPECT_EQ(once.size(), schedules.size());
  for (const auto& schedule : schedules) {
    EXPECT_EQ(schedule.size(), 12u);
    EXPECT_NO_THROW(check_head_schedule(schedule, 192, 12, false)) << format_head_schedule(schedule);
    EXPECT_GE(std::count(schedule.begin(), schedule.end(), 12), 6);
    EXPECT_LT(schedule[0], 12);
    for (const int64_t heads : schedule) EXPECT_EQ(192 / heads % 8, 0);
  }
}

TEST(ProposeSchedules, CountsAsMuchAsCombinatoricsSay) {
  // Head counts before the base: 1, 2, 3, 4, 6, 8. Lengths: of one stage 2 to 6, of two 6 combinations, of three one.
  EXPECT_EQ(proposed({.d_model = 192, .layers = 12, .base_heads = 12}).size(), 6u * 5 + 15 * 6 + 20);
  EXPECT_EQ(proposed({.d_model = 192, .layers = 12, .base_heads = 12, .first_heads = {3}, .most_stages = 2}).size(),
            5u);
}

TEST(ProposeSchedules, OrdersByHeadsThenByLengths) {
  EXPECT_EQ(proposed({.d_model = 32, .layers = 6, .base_heads = 4, .least_stage_layers = 1}),
            (std::vector<std::string>{"1x1,4x5", "1x2,4x4", "1x3,4x3", "1x1,2x1,4x4", "1x1,2x2,4x3", "1x2,2x1,4x3",
                                      "2x1,4x5", "2x2,4x4", "2x3,4x3"}));
}

TEST(ProposeSchedules, RefusesSpacesWithoutASchedule) {
  EXPECT_REFUSED(propose_schedules({.d_model = 768, .layers = 3, .base_heads = 12}), "found none");
  EXPECT_REFUSED(propose_schedules({.d_model = 768, .layers = 12, .base_heads = 12, .first_heads = {5}}), "found none");
  EXPECT_REFUSED(propose_schedules({.d_model = 768, .layers = 12, .base_heads = 7}), "divide");
  EXPECT_REFUSED(propose_schedules({.d_model = 36, .layers = 12, .base_heads = 9}), "is a multiple of 8");
  EXPECT_REFUSED(propose_schedules({.d_model = 768, .layers = 12, .base_heads = 12, .least_stages = 5}),
                 "least_stages");
  EXPECT_REFUSED(propose_schedules({.d_model = 768, .layers = 0, .base_heads = 12}), "layers");
}

}  // namespace
}  // namespace prism
