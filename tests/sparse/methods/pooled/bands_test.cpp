// Pooling gains of rotary pairs, and the bands derived from them.
#include "prism/sparse/methods/pooled/bands.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>

#include "prism/core/error.h"

namespace prism {
namespace {

std::vector<double> angles(double base, int64_t head_dim) {
  std::vector<double> found;
  for (int64_t j = 0; j < head_dim / 2; ++j)
    found.push_back(std::pow(base, -2.0 * static_cast<double>(j) / static_cast<double>(head_dim)));
  return found;
}

std::vector<int64_t> range(int64_t first, int64_t end, int64_t other_first, int64_t other_end) {
  std::vector<int64_t> found;
  for (int64_t i = first; i < end; ++i) found.push_back(i);
  for (int64_t i = other_first; i < other_end; ++i) found.push_back(i);
  return found;
}

TEST(PoolingGain, IsTheLengthOfTheMeanOfATurningVector) {
  for (const double base : {1e4, 5e5, 1e6})
    for (const int64_t block : {32, 128})
      for (const double angle : angles(base, 128)) {
        std::complex<double> sum = 0;
        for (int64_t t = 1000; t < 1000 + block; ++t) sum += std::polar(1.0, angle * static_cast<double>(t));
        EXPECT_NEAR(pooling_gain(angle, block), std::abs(sum) / static_cast<double>(block), 1e-9) << angle;
      }
  EXPECT_EQ(pooling_gain(0, 128), 1);
}

TEST(MultiAxisAngles, AreThoseOfTextWhereAllAxesAdvance) {
  const auto plain = angles(1e6, 128);
  for (const bool interleaved : {false, true})
    EXPECT_EQ(multi_axis_angles(plain, {{24, 20, 20}, interleaved}, std::vector{1.0, 1.0, 1.0}), plain);
}

TEST(MultiAxisAngles, TurnOnlyThePairsOfTheAxisThatAdvances) {
  const std::vector<double> plain = {8, 7, 6, 5, 4, 3, 2, 1}, steps = {0, 0, 1};  // along a row of an image
  EXPECT_EQ(multi_axis_angles(plain, {{2, 3, 3}, false}, steps), (std::vector<double>{0, 0, 0, 0, 0, 3, 2, 1}));
  // Qwen3-VL's order: t h w t h w t h for sections of 3, 3 and 2.
  EXPECT_EQ(multi_axis_angles(plain, {{3, 3, 2}, true}, steps), (std::vector<double>{0, 0, 6, 0, 0, 3, 0, 0}));
  EXPECT_EQ(multi_axis_angles(plain, {{6, 1, 1}, true}, steps), (std::vector<double>{0, 0, 6, 0, 0, 0, 0, 0}));
  // Pairs that do not turn are then the slowest, wherever they are.
  const auto bands = paper_bands(interleaved_pairs(16, multi_axis_angles(plain, {{3, 3, 2}, true}, steps)), 4, 12);
  EXPECT_EQ(bands[0].features, (std::vector<int64_t>{4, 5, 10, 11}));
  EXPECT_THROW(multi_axis_angles(plain, {{3, 3, 3}, true}, steps), InputError);
  EXPECT_THROW(multi_axis_angles(plain, {{4, 4}, true}, steps), InputError);
  EXPECT_THROW(multi_axis_angles(plain, {{9, -1, 0}, false}, steps), InputError);
}

TEST(PaperBands, ArePairsAndNoSliceOfTheVector) {
  const auto bands = paper_bands(half_split_pairs(128, angles(1e6, 128)), 64, 96);
  EXPECT_EQ(bands[0].features, range(0, 32, 64, 96));
  EXPECT_EQ(bands[1].features, range(16, 64, 80, 128));
  EXPECT_EQ(paper_bands(half_split_pairs(128, angles(1e6, 128)))[1].features, bands[1].features);
  EXPECT_EQ(paper_bands(interleaved_pairs(128, angles(1e6, 128)))[0].features, range(0, 64, 0, 0));
}

TEST(PaperBands, CountWhatDoesNotTurnToTheSlowBand) {
  const auto bands = paper_bands(half_split_pairs(80, angles(1e4, 32)));  // 32 of 80 features turn
  EXPECT_EQ(bands[0].features, range(0, 8, 16, 24));
  EXPECT_EQ(bands[1].features, range(4, 16, 20, 80));
}

TEST(AutoBands, AreThePapersAtItsBaseAndMoveWithTheBase) {
  const auto pairs = half_split_pairs(128, angles(1e6, 128));
  EXPECT_EQ(auto_bands(pairs, 128)[0].features, paper_bands(pairs)[0].features);
  EXPECT_EQ(auto_bands(pairs, 128)[1].features, paper_bands(pairs)[1].features);
  const auto slower = auto_bands(half_split_pairs(128, angles(1e4, 128)), 128);
  EXPECT_GT(slower[0].features.size(), 64u);
  EXPECT_LT(slower[1].features.size(), 96u);
  const auto tiny = auto_bands(half_split_pairs(8, std::vector{1.0, 1e-9, 1e-9, 1e-9}), 32);
  EXPECT_EQ(tiny[0].features, range(0, 1, 4, 5));
  EXPECT_EQ(tiny[1].features, range(1, 4, 5, 8));
}

TEST(BandsInput, ThatIsWrongGetsASentence) {
  const auto pairs = half_split_pairs(64, angles(1e4, 64));
  EXPECT_THROW(paper_bands(pairs, 63, 0), InputError);
  EXPECT_THROW(paper_bands(pairs, 0, 66), InputError);
  EXPECT_THROW(auto_bands(half_split_pairs(64, std::vector<double>()), 128), InputError);
  EXPECT_THROW(half_split_pairs(64, angles(1e4, 80)), InputError);
}

}  // namespace
}  // namespace prism
