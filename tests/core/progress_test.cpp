#include "prism/core/progress.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace prism {
namespace {

TEST(ShortNumber, HasThreeSignificantDigits) {
  EXPECT_EQ(short_number(1234), "1.23k");
  EXPECT_EQ(short_number(12345), "12.3k");
  EXPECT_EQ(short_number(123456), "123k");
  EXPECT_EQ(short_number(1.5e6), "1.50M");
  EXPECT_EQ(short_number(123.6e6), "124M");
  EXPECT_EQ(short_number(7.25e9), "7.25G");
  EXPECT_EQ(short_number(1.5e13), "15000G");
  EXPECT_EQ(short_number(12.34), "12.3");
  EXPECT_EQ(short_number(0.01234), "0.0123");
  EXPECT_EQ(short_number(-1234), "-1.23k");
}

TEST(ShortNumber, ShowsSmallWholeNumbersAsTheyAre) {
  EXPECT_EQ(short_number(0), "0");
  EXPECT_EQ(short_number(7), "7");
  EXPECT_EQ(short_number(999), "999");
  EXPECT_EQ(short_number(1000), "1.00k");
}

TEST(ShortNumber, RoundsIntoTheNextUnit) {
  EXPECT_EQ(short_number(999.7), "1.00k");
  EXPECT_EQ(short_number(9999), "10.0k");
  EXPECT_EQ(short_number(99990), "100k");
  EXPECT_EQ(short_number(999499), "999k");
  EXPECT_EQ(short_number(999950), "1.00M");
  EXPECT_EQ(short_number(999.9e6), "1.00G");
}

TEST(ShortNumber, SurvivesWhatIsNoNumber) {
  EXPECT_EQ(short_number(std::nan("")), "nan");
  EXPECT_EQ(short_number(std::numeric_limits<double>::infinity()), "infG");
}

TEST(ShortDuration, ChangesUnitsAtTheMinuteAndTheHour) {
  EXPECT_EQ(short_duration(0), "0 s");
  EXPECT_EQ(short_duration(0.4), "0 s");
  EXPECT_EQ(short_duration(59.4), "59 s");
  EXPECT_EQ(short_duration(59.6), "1 min 00 s");
  EXPECT_EQ(short_duration(185), "3 min 05 s");
  EXPECT_EQ(short_duration(3599.4), "59 min 59 s");
  EXPECT_EQ(short_duration(3600), "1 h 00 min");
  EXPECT_EQ(short_duration(7659), "2 h 07 min");
  EXPECT_EQ(short_duration(360000), "100 h 00 min");
  EXPECT_EQ(short_duration(-3), "0 s");
}

TEST(Progress, AwayFromATerminalPrintsNotesAndTheLastLineOnly) {
  // The first plain line appears after ten seconds, so a short job prints none.
  testing::internal::CaptureStderr();
  {
    Progress progress("tokenize", 1000, "B");
    for (int64_t done = 0; done <= 1000; ++done) progress.update(done, "detail");
    progress.note("a note");
    progress.finish("1000 bytes in 2 shards");
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "a note\n1000 bytes in 2 shards\n");
}

}  // namespace
}  // namespace prism
