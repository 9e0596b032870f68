#include "prism/report/draw/number_text.h"

#include <gtest/gtest.h>

namespace prism {
namespace {

TEST(NumberText, HasItsDecimalsCommasAndSign) {
  EXPECT_EQ(number_text(4.64098, kLossNumber), "4.6410");
  EXPECT_EQ(number_text(-0.03, kLossDifference), "-0.0300");
  EXPECT_EQ(number_text(0.03, kLossDifference), "+0.0300");
  EXPECT_EQ(number_text(3469.4, kWholeNumber), "3,469");
  EXPECT_EQ(number_text(-1234567.8, kDistanceDifference), "-1,234,567.8");
  EXPECT_EQ(number_text(123, kWholeNumber), "123");
}

TEST(NumberText, GivesNoSignToWhatRoundsToNothing) {
  EXPECT_EQ(number_text(-0.00004, kLossDifference), "0.0000");
  EXPECT_EQ(number_text(0.00004, kLossDifference), "0.0000");
  EXPECT_EQ(number_text(-0.0, kLossNumber), "0.0000");
  EXPECT_EQ(number_text(-0.00006, kLossDifference), "-0.0001");
}

TEST(SpreadText, HasADeviationFromTwoValuesOn) {
  EXPECT_EQ(spread_text({-0.2, 0.1, 3}, kLossDifference), "-0.2000 ± 0.1000");
  EXPECT_EQ(spread_text({-0.2, 0, 1}, kLossDifference), "-0.2000");
  EXPECT_EQ(spread_text({}, kLossNumber), kNoValue);
}

TEST(IntervalText, HasBothEndsAndTheirSigns) {
  EXPECT_EQ(interval_text({-0.04, 0.03}, kLossDifference), "-0.0400 to +0.0300");
  EXPECT_EQ(minus_signs("-0.0400 to -0.0300"), "−0.0400 to −0.0300");
}

TEST(Grouped, PutsCommasBetweenThousands) {
  EXPECT_EQ(grouped(int64_t{8421376}), "8,421,376");
  EXPECT_EQ(grouped(int64_t{-1000}), "-1,000");
  EXPECT_EQ(grouped(std::optional<int64_t>()), kNoValue);
}

}  // namespace
}  // namespace prism
