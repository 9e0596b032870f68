// What pooling leaves of turning pairs, and the bands that are cut by it.
#include "prism/sparse/bands.h"

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
