#include "prism/attention/head_schedule.h"

#include <gtest/gtest.h>

#include <functional>

#include "prism/core/error.h"
#include "tests/core/message_of.h"

namespace prism {
namespace {

TEST(HeadSchedule, ReadsStagesListsAndMixtures) {
  EXPECT_EQ(parse_head_schedule("3x2,6x1,12"), (HeadSchedule{3, 3, 6, 12}));
  EXPECT_EQ(parse_head_schedule("3, 3, 6 ,12"), (HeadSchedule{3, 3, 6, 12}));
  EXPECT_EQ(format_head_schedule({3, 3, 6, 12}), "3x2,6x1,12x1");
  EXPECT_EQ(parse_head_schedule(format_head_schedule({2, 4, 4, 2})), (HeadSchedule{2, 4, 4, 2}));
}

TEST(HeadSchedule, RejectsTextThatDoesNotRead) {
  for (const char* text : {"", "3x", "x3", "3x2,", "a", "3x-1", "0x2", "3.5x2", "3x2;6x2", "1x99999999999999999999"})
    EXPECT_NE(message_of([&] { parse_head_schedule(text); }), "") << text;
}

TEST(HeadSchedule, RejectsHeadsThatDoNotDivideTheModelAndNamesTheNearest) {
  EXPECT_EQ(message_of([] {
              check_head_schedule({3, 5}, 768, 0, false);
            }),
            "[head_schedule] layer 1: expected heads that divide d_model = 768; found 5; the nearest counts that fit "
            "are 4 and 6.");
  EXPECT_NE(message_of([] { check_head_schedule({800}, 768, 0, true); }), "")
      << "more heads than features, also under allow_any";
}

TEST(HeadSchedule, RejectsLayersWithoutHeads) {
  EXPECT_NE(message_of([] {
              check_head_schedule({4, 0}, 768, 0, true);
            }).find("layer 1: expected at least 1 head; found 0"),
            std::string::npos);
  EXPECT_NE(message_of([] { check_head_schedule({-4}, 768, 0, true); }), "");
}

TEST(HeadSchedule, RejectsALayerWithFewerHeadsThanTheOneBefore) {
  EXPECT_NE(message_of([] {
              check_head_schedule({3, 8, 6, 12}, 768, 0, false);
            }).find("layer 2: expected at least the 8 heads of layer 1; found 6"),
            std::string::npos);
  check_head_schedule({3, 8, 6, 12}, 768, 0, true);
}

TEST(HeadSchedule, RejectsAnEndThatIsNotTheBase) {
  EXPECT_NE(message_of([] { check_head_schedule({3, 6}, 768, 12, false); }), "");
  check_head_schedule({3, 6}, 768, 12, true);
  check_head_schedule({3, 12}, 768, 12, false);
}

TEST(HeadSchedule, WarnsWhereTheGuidelinesAreMissed) {
  const auto warnings = [](const char* text, int64_t d_model, int64_t base = 0) {
    const auto schedule = parse_head_schedule(text);
    std::vector<int64_t> head_dims;
    for (const int64_t heads : schedule) head_dims.push_back(d_model / heads);
    return head_schedule_warnings(schedule, base, head_dims);
  };
  EXPECT_TRUE(warnings("3x2,6x2,8x2,12x6", 768, 12).empty());
  EXPECT_TRUE(warnings("12x12", 768, 12).empty());
  // C5: a stage of one layer with heads 384 wide.
  const auto c5 = warnings("2x1,12x11", 768, 12);
  ASSERT_EQ(c5.size(), 2u);
  EXPECT_NE(c5[0].find("one layer long"), std::string::npos);
  EXPECT_NE(c5[1].find("384 wide"), std::string::npos);
  const auto c1 = warnings("3x6,6x1,12x5", 768, 12);
  EXPECT_EQ(c1.size(), 2u) << "a short stage, and less than half at the base";
  EXPECT_TRUE(warnings("12x4,6x2,12x2", 1536).empty()) << "6 of 8 at the base";
}

}  // namespace
}  // namespace prism
