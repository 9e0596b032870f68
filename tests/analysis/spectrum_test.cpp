// Spectra of known queries and keys.
#include "prism/analysis/spectrum.h"

#include <ATen/Functions.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "prism/analysis/spectrum_probe.h"
#include "prism/attention/rotary.h"
#include "prism/bench/synthetic_heads.h"
#include "prism/core/error.h"
#include "prism/sparse/methods/pooled/bands.h"

namespace prism {
namespace {

TEST(Spectrum, OfConstantContentIsThePoolingGain) {
  // One vector rotated by its position: each pair has length 1 at every token, and length lambda after pooling.
  for (const RotaryConfig& config :
       {RotaryConfig{.base = 1e4}, RotaryConfig{.base = 5e5}, RotaryConfig{.base = 1e6},
        RotaryConfig{.base = 1e6, .scaling = "yarn", .factor = 4, .original_context = 32768}}) {
    const auto pairs = rotary_pairs(config, 128);
    const auto angle_J = rotary_angles(config, 128);
    const auto turn_TJ = at::outer(at::arange(512, torch::kDouble), angle_J);
    const auto rows_TD = at::cat({turn_TJ.cos(), turn_TJ.sin()}, 1);
    const auto spectrum = measure_spectrum(rows_TD, rows_TD, pairs, 128);
    ASSERT_EQ(spectrum.pairs.size(), 64u);
    for (const auto& pair : spectrum.pairs) {
      EXPECT_NEAR(pair.energy.q, std::sqrt(0.5), 1e-6);
      EXPECT_NEAR(pair.energy.q_pooled / pair.energy.q, pair.gain, 1e-6) << pair.pair;
      EXPECT_EQ(pair.energy.k_pooled, pair.energy.q_pooled);
    }
  }
}

TEST(Spectrum, CutsThePapersZones) {
  // Base 10^6, width 128, blocks of 128: pairs 0 to 13 turn at least once (2 j up to 28); from pair 32 on pooling keeps
  // all.
  torch::manual_seed(1);
  const auto rows = torch::randn({256, 128});
  const auto spectrum = measure_spectrum(rows, rows, rotary_pairs({.base = 1e6}, 128), 128);
  EXPECT_EQ(spectrum.zone("dead").pairs, 14);
  EXPECT_EQ(spectrum.zone("transition").pairs, 18);
  EXPECT_EQ(spectrum.zone("semantic").pairs, 32);
  EXPECT_EQ(spectrum.zone("full").pairs, 64);
  const double expected = rows.to(torch::kDouble).square().mean().sqrt().item<double>();
  EXPECT_NEAR(spectrum.zone("full").energy.q, expected, 1e-6);
}

TEST(BandAttention, OfAllFeaturesIsAttention) {
  torch::manual_seed(2);
  const auto q = torch::randn({300, 16}), k = torch::randn({300, 16});
  std::vector<int64_t> all(16);
  for (int64_t i = 0; i < 16; ++i) all[static_cast<size_t>(i)] = i;
  const auto found = band_attention(q, k, all, 0.25, 10);
  ASSERT_EQ(found.sizes(), torch::IntArrayRef({10, 10}));
  const auto scores =
      (at::mm(q, k.t()) * 0.25)
          .masked_fill(torch::ones({300, 300}, torch::kBool).triu(1), -std::numeric_limits<float>::infinity());
  const auto expected = scores.softmax(-1).view({10, 30, 10, 30}).sum(3).mean(1);
  EXPECT_TRUE(torch::allclose(found, expected.to(torch::kDouble), 1e-5, 1e-7));
  EXPECT_TRUE(torch::allclose(found.sum(1), torch::ones({10}, torch::kDouble), 1e-6, 0));
}

TEST(BandAttention, OfTheLastQueriesIsItsLastRows) {
  torch::manual_seed(3);
  const auto q = torch::randn({300, 16}), k = torch::randn({300, 16});
  const std::vector<int64_t> some = {0, 3, 8, 11};
  const auto whole = band_attention(q, k, some, 0.25, 10);
  const auto last = band_attention(q.slice(0, 210), k, some, 0.25, 10);
  ASSERT_EQ(last.sizes(), torch::IntArrayRef({3, 10}));
  EXPECT_TRUE(torch::allclose(last, whole.slice(0, 7), 1e-6, 1e-9));
  // If the first query is inside a cell, that cell's row averages only its queries.
  const auto some_of_a_cell = band_attention(q.slice(0, 225), k, some, 0.25, 10);
  ASSERT_EQ(some_of_a_cell.sizes(), torch::IntArrayRef({3, 10}));
  EXPECT_TRUE(torch::allclose(some_of_a_cell.slice(0, 1), whole.slice(0, 8), 1e-6, 1e-9));
  EXPECT_TRUE(torch::allclose(some_of_a_cell.sum(1), torch::ones({3}, torch::kDouble), 1e-6, 0));
}

TEST(BandAttention, ShowsSlashesInFastPairsAndSinksInSlowOnes) {
  const auto heads = make_synthetic_heads({.seed = 1,
                                           .head_dim = 128,
                                           .kv_heads = 1,
                                           .base = 1e6,
                                           .noise = 0.3,
                                           .heads = {{.sink = 16, .slashes = {{512, 20}}}}},
                                          2048, torch::kFloat);
  const auto q = heads.q_BTHD[0].select(1, 0), k = heads.k_BGSD[0][0];
  const auto bands = paper_bands(heads.pairs);
  const double scale = 1 / std::sqrt(128.0);
  const auto fast = band_attention(q, k, bands[0].features, scale, 16);
  std::vector<int64_t> slowest;
  for (int64_t j = 48; j < 64; ++j) slowest.insert(slowest.end(), {j, j + 64});
  const auto slow = band_attention(q, k, slowest, scale, 16);
  for (int64_t row = 6; row < 16; ++row) {
    EXPECT_EQ(fast[row].argmax().item<int64_t>(), row - 4) << row;
    EXPECT_EQ(slow[row].argmax().item<int64_t>(), 0) << row;
  }
}

TEST(SpectrumInput, ThatIsWrongGetsASentence) {
  const auto rows = torch::randn({8, 16});
  const auto pairs = rotary_pairs({}, 16);
  EXPECT_THROW(measure_spectrum(rows, torch::randn({8, 32}), pairs, 4), InputError);
  EXPECT_THROW(measure_spectrum(rows, rows, pairs, 0), InputError);
  EXPECT_THROW(band_attention(torch::randn({9, 16}), torch::randn({8, 16}), {0}, 1, 4), InputError);
  EXPECT_THROW(band_attention(rows, rows, {}, 1, 4), InputError);
}

TEST(BandMaps, AreTheAttentionOfEachBandOfAHead) {
  torch::manual_seed(5);
  const LayerTensors layer{torch::randn({30, 4, 16}), torch::randn({2, 40, 16}), rotary_pairs({.base = 1e4}, 16)};
  const auto maps = band_maps(layer, 3, 8);
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].name, "high");
  EXPECT_EQ(maps[2].name, "full");
  EXPECT_EQ(maps[2].cell_tokens, 5);
  const auto q_TD = layer.q_THD.select(1, 3), k_SD = layer.k_GSD[1];
  EXPECT_TRUE(torch::equal(maps[2].shares_MN, band_attention(q_TD, k_SD, all_features(16), 0.25, 8)));
  const auto slow = paper_bands(layer.pairs)[1].features;
  EXPECT_TRUE(torch::equal(maps[1].shares_MN, band_attention(q_TD, k_SD, slow, 0.25, 8)));
}

}  // namespace
}  // namespace prism
