// Which tokens the sampler chooses, and how often.
#include "prism/generation/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

#include "prism/core/error.h"

namespace prism {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<int64_t> count_draws(const SamplerOptions& options, const std::vector<float>& logits, int64_t draws) {
  Sampler sampler(options);
  std::vector<int64_t> counts(logits.size(), 0);
  for (int64_t i = 0; i < draws; ++i) ++counts[static_cast<size_t>(sampler.pick(logits))];
  return counts;
}

std::set<int32_t> drawn_ids(const SamplerOptions& options, const std::vector<float>& logits) {
  const auto counts = count_draws(options, logits, 3000);
  std::set<int32_t> ids;
  for (size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) ids.insert(static_cast<int32_t>(i));
  return ids;
}

/// The logits of given probabilities.
std::vector<float> logits_of(const std::vector<double>& probabilities) {
  std::vector<float> logits;
  logits.reserve(probabilities.size());
  for (const double p : probabilities) logits.push_back(static_cast<float>(std::log(p)));
  return logits;
}

double chi_square(const std::vector<int64_t>& counts, const std::vector<double>& probabilities, int64_t draws) {
  double sum = 0;
  for (size_t i = 0; i < counts.size(); ++i) {
    const double expected = probabilities[i] * static_cast<double>(draws);
    sum += (static_cast<double>(counts[i]) - expected) * (static_cast<double>(counts[i]) - expected) / expected;
  }
  return sum;
}

TEST(Sampler, DrawsEachTokenAsOftenAsItsProbabilitySays) {
  const std::vector<float> logits = {0.5F, -1.0F, 2.0F, 0.0F, 1.0F, -0.5F};
  const double temperature = 0.7;
  std::vector<double> probabilities;
  double total = 0;
  for (const float logit : logits) total += probabilities.emplace_back(std::exp(logit / temperature));
  for (double& p : probabilities) p /= total;

  // Chi-square with 5 degrees of freedom exceeds 30.9 for one seed in 100,000; a temperature 5% off exceeds it by far.
  const int64_t draws = 200'000;
  const auto with = [&](double t) { return SamplerOptions{.temperature = t, .top_k = 0, .top_p = 1, .seed = 11}; };
  EXPECT_LT(chi_square(count_draws(with(temperature), logits, draws), probabilities, draws), 30.9);
  EXPECT_GT(chi_square(count_draws(with(temperature * 1.05), logits, draws), probabilities, draws), 100.0);
}

TEST(Sampler, KeepsTheProportionsOfTheTokensThatTopKAndTopPLeave) {
  const auto logits = logits_of({0.05, 0.4, 0.25, 0.2, 0.1});
  const int64_t draws = 100'000;
  const SamplerOptions options{.temperature = 1, .top_k = 3, .top_p = 0.7, .seed = 5};
  // top_k leaves 0.4, 0.25, 0.2, renormalised 0.47, 0.29, 0.24; the first two reach 0.7. In the other order, top_p on
  // all tokens would leave three.
  const auto counts = count_draws(options, logits, draws);
  EXPECT_EQ(counts[0] + counts[3] + counts[4], 0);
  const double share = static_cast<double>(counts[1]) / static_cast<double>(draws), expected = 0.4 / 0.65;
  EXPECT_NEAR(share, expected, 5 * std::sqrt(expected * (1 - expected) / static_cast<double>(draws)));
}

TEST(Sampler, DrawsExactlyTheTopKTokensAndTakesTheLowerIdOfEqualLogits) {
  const std::vector<float> logits = {1.0F, 2.0F, 2.0F, 1.0F, 3.0F, 1.0F};
  const auto ids = [&](int64_t top_k) {
    return drawn_ids({.temperature = 1, .top_k = top_k, .top_p = 1, .seed = 2}, logits);
  };
  EXPECT_EQ(ids(1), (std::set<int32_t>{4}));
  EXPECT_EQ(ids(2), (std::set<int32_t>{1, 4}));
  EXPECT_EQ(ids(3), (std::set<int32_t>{1, 2, 4}));
  EXPECT_EQ(ids(4), (std::set<int32_t>{0, 1, 2, 4}));
  EXPECT_EQ(ids(6), (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ids(100), (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
  EXPECT_EQ(ids(0), (std::set<int32_t>{0, 1, 2, 3, 4, 5}));
}

TEST(Sampler, DrawsTheFewestTokensThatReachTopP) {
  const auto logits = logits_of({0.1, 0.5, 0.1, 0.3});
  const auto ids = [&](double top_p) {
    return drawn_ids({.temperature = 1, .top_k = 0, .top_p = top_p, .seed = 3}, logits);
  };
  EXPECT_EQ(ids(0.01), (std::set<int32_t>{1}));
  EXPECT_EQ(ids(0.49), (std::set<int32_t>{1}));
  EXPECT_EQ(ids(0.51), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(ids(0.79), (std::set<int32_t>{1, 3}));
  EXPECT_EQ(ids(0.85), (std::set<int32_t>{0, 1, 3}));  // of two equal tokens, the lower id
  EXPECT_EQ(ids(0.95), (std::set<int32_t>{0, 1, 2, 3}));
}

TEST(Sampler, FindsTopPBeyondThePortionItSortsFirst) {
  // 300 tokens of nearly equal probability, shuffled: the 180 likeliest reach 0.6.
  std::vector<float> logits;
  std::set<int32_t> expected;
  for (int32_t id = 0; id < 300; ++id) {
    const int32_t rank = id * 77 % 300;  // 77 and 300 have no common divisor: every rank once
    logits.push_back(-1e-7F * static_cast<float>(rank));
    if (rank < 180) expected.insert(id);
  }
  // 3000 draws miss one of them with probability 180 (1 - 1/180)^3000 = 1e-5.
  EXPECT_EQ(drawn_ids({.temperature = 1, .top_k = 0, .top_p = 0.5999, .seed = 4}, logits), expected);
}

TEST(Sampler, AppliesTheTemperatureBeforeTopP) {
  // Probabilities 0.5, 0.3, 0.2; at temperature 0.25 they are 0.87, 0.11, 0.02.
  const auto logits = logits_of({0.5, 0.3, 0.2});
  EXPECT_EQ(drawn_ids({.temperature = 0.25, .top_k = 0, .top_p = 0.85, .seed = 6}, logits), (std::set<int32_t>{0}));
  EXPECT_EQ(drawn_ids({.temperature = 1, .top_k = 0, .top_p = 0.85, .seed = 6}, logits), (std::set<int32_t>{0, 1, 2}));
}

TEST(Sampler, TakesTheFirstOfTheLikeliestAtTemperatureZero) {
  Sampler sampler({.temperature = 0, .top_k = 0, .top_p = 1, .seed = 1});
  EXPECT_EQ(sampler.pick(std::vector<float>{-kInfinity, 1.0F, 7.0F, 7.0F, 3.0F}), 2);
  EXPECT_EQ(sampler.pick(std::vector<float>{-5.0F}), 0);
}

TEST(Sampler, ApproachesTheLikeliestAsTheTemperatureFalls) {
  EXPECT_EQ(drawn_ids({.temperature = 1e-300, .top_k = 0, .top_p = 1, .seed = 1}, {1.0F, 1.5F, -kInfinity}),
            (std::set<int32_t>{1}));
}

TEST(Sampler, NeverDrawsATokenOfMinusInfinity) {
  EXPECT_EQ(drawn_ids({.temperature = 5, .top_k = 0, .top_p = 1, .seed = 1}, {-kInfinity, 0.0F, -kInfinity, 0.0F}),
            (std::set<int32_t>{1, 3}));
}

TEST(Sampler, RepeatsItsDrawsForASeedAndChangesThemForAnother) {
  std::vector<float> logits;
  for (int i = 0; i < 500; ++i) logits.push_back(static_cast<float>(std::sin(i)));
  const auto draw = [&](int64_t seed) {
    Sampler sampler({.temperature = 1, .top_k = 100, .top_p = 0.9, .seed = seed});
    std::vector<int32_t> ids;
    for (int i = 0; i < 50; ++i) ids.push_back(sampler.pick(logits));
    return ids;
  };
  EXPECT_EQ(draw(8), draw(8));
  EXPECT_NE(draw(8), draw(9));
}

TEST(Sampler, FailsOnLogitsThatAreNotFinite) {
  for (const double temperature : {0.0, 1.0}) {
    Sampler sampler({.temperature = temperature, .top_k = 2, .top_p = 1, .seed = 1});
    EXPECT_THROW(sampler.pick(std::vector<float>{NAN, 1.0F, 2.0F}), FailedError);
    EXPECT_THROW(sampler.pick(std::vector<float>{1.0F, 2.0F, NAN}), FailedError);
    EXPECT_THROW(sampler.pick(std::vector<float>{1.0F, kInfinity}), FailedError);
    EXPECT_THROW(sampler.pick(std::vector<float>{-kInfinity, -kInfinity}), FailedError);
    EXPECT_THROW(sampler.pick({}), InputError);
  }
}

TEST(Sampler, RejectsOptionsOutOfRange) {
  const auto rejects = [](const SamplerOptions& options) { EXPECT_THROW(Sampler{options}, InputError); };
  rejects({.temperature = -0.1});
  rejects({.temperature = NAN});
  rejects({.temperature = kInfinity});
  rejects({.top_k = -1});
  rejects({.top_p = 0});
  rejects({.top_p = 1.01});
  rejects({.top_p = NAN});
}

}  // namespace
}  // namespace prism
