#include "prism/core/random.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <set>
#include <span>
#include <vector>

namespace prism {
namespace {

TEST(Random, Mix64IsTheFinaliserOfSplitMix64) {
  // The first outputs of SplitMix64 seeded with 1234567, as its authors' C code prints them.
  const std::array<uint64_t, 3> expected = {6457827717110365317u, 3203168211198807973u, 9817491932198370423u};
  for (uint64_t n = 0; n < expected.size(); ++n) EXPECT_EQ(mix64(1234567 + 0x9E3779B97F4A7C15u * (n + 1)), expected[n]);
}

TEST(HashBytes, DiffersForEveryChangedByteAndLength) {
  std::vector<std::byte> bytes(131);
  for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(37 * i);
  std::set<uint64_t> hashes = {hash_bytes(bytes)};
  EXPECT_EQ(hash_bytes(bytes), *hashes.begin());
  for (auto& byte : bytes) {
    byte ^= std::byte{1};
    EXPECT_TRUE(hashes.insert(hash_bytes(bytes)).second);
    byte ^= std::byte{1};
  }
  for (size_t length = 0; length < bytes.size(); ++length)
    EXPECT_TRUE(hashes.insert(hash_bytes(std::span(bytes).first(length))).second) << length;
  std::swap(bytes[0], bytes[8]);  // the same bytes in another order
  EXPECT_TRUE(hashes.insert(hash_bytes(bytes)).second);
}

TEST(Random, DrawsAreTheSameOnEveryMachine) {
  // From Python's unbounded integers, reduced modulo 2**64 after every step:
  //   def mix(x): x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9 % 2**64; x = (x ^ x >> 27) * 0x94D049BB133111EB % 2**64;
  //   return x ^ x >> 31 key = mix(mix((seed + 0x9E3779B97F4A7C15) % 2**64) ^ mix((stream + 0xD1B54A32D192ED03) %
  //   2**64)) [mix((key + n * 0x9E3779B97F4A7C15) % 2**64) for n in (1, 2, 3)]
  struct Case {
    uint64_t seed, stream;
    std::array<uint64_t, 3> draws;
  };
  for (const auto& [seed, stream, draws] : {
           Case{1, 0, {0xfa72c05a754f82d5u, 0xc8875d882da8d887u, 0xb8d924ce34af68e3u}},
           Case{1, 1, {0xf6424fedb34615a2u, 0xbef565a9d39f2f22u, 0xa9ebcc67be681d70u}},
           Case{0, 0, {0xfc0415bd76a1fb9cu, 0xa4323f8ab4758681u, 0x04ba3b239866fafeu}},
           Case{UINT64_MAX, 7, {0x70e7cff59e9173c9u, 0x0dc1b0ad4e42b4ddu, 0x6efc9f8a20a2cc71u}},
       }) {
    Random random(seed, stream);
    for (const uint64_t draw : draws) EXPECT_EQ(random.next(), draw) << "seed " << seed << ", stream " << stream;
  }
}

TEST(Random, UniformFillsTheUnitIntervalEvenly) {
  Random random(5);
  constexpr int kDraws = 100000;
  constexpr size_t kBins = 64;
  std::array<int, kBins> counts{};
  for (int i = 0; i < kDraws; ++i) {
    const double u = random.uniform();
    ASSERT_GE(u, 0.0);
    ASSERT_LT(u, 1.0);
    ++counts[static_cast<size_t>(u * kBins)];
  }
  double chi_square = 0;
  const double expected = static_cast<double>(kDraws) / kBins;
  for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
  // 63 degrees of freedom: mean 63, standard deviation 11.2. The bounds are five deviations either way.
  EXPECT_GT(chi_square, 63 - 56);
  EXPECT_LT(chi_square, 63 + 56);
}

TEST(Random, BelowStaysBelowAndReachesEveryValueEqually) {
  Random random(6);
  for (const uint64_t bound : {1u, 2u, 3u, 7u, 10u}) {
    std::vector<int> counts(bound, 0);
    constexpr int kDraws = 70000;
    for (int i = 0; i < kDraws; ++i) {
      const uint64_t value = random.below(bound);
      ASSERT_LT(value, bound);
      ++counts[value];
    }
    const double expected = kDraws / static_cast<double>(bound);
    for (const int count : counts) EXPECT_NEAR(count, expected, 5 * std::sqrt(expected));
  }
}

TEST(Random, BelowAHugeBoundHasNoModuloBias) {
  // 3 * 2^62: with a plain remainder, half of all draws would fall into the lowest third.
  constexpr uint64_t kThird = uint64_t{1} << 62;
  Random random(7);
  int low = 0;
  constexpr int kDraws = 30000;
  for (int i = 0; i < kDraws; ++i) low += random.below(3 * kThird) < kThird ? 1 : 0;
  // Binomial with p = 1/3: standard deviation 82. A share of one half would be 5000 off.
  EXPECT_NEAR(low, kDraws / 3.0, 5 * 82);
}

TEST(Random, StreamsAndSeedsShareNoDraws) {
  std::set<uint64_t> draws;
  size_t count = 0;
  for (uint64_t seed = 0; seed < 20; ++seed) {
    for (uint64_t stream = 0; stream < 20; ++stream) {
      Random random(seed, stream);
      for (int i = 0; i < 50; ++i, ++count) draws.insert(random.next());
    }
  }
  // Two of 20,000 random 64-bit numbers are equal with probability 1e-11. Overlapping streams share many numbers.
  EXPECT_EQ(draws.size(), count);
}

TEST(Random, NeighbouringStreamsAreUncorrelated) {
  constexpr int kDraws = 20000;
  Random a(1, 0), b(1, 1), c(2, 0);
  double ab = 0, ac = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = a.uniform() - 0.5;
    ab += x * (b.uniform() - 0.5);
    ac += x * (c.uniform() - 0.5);
  }
  // A product of two uniform numbers has variance 1/144, so the sum has standard deviation sqrt(20000) / 12 = 11.8.
  EXPECT_LT(std::abs(ab), 5 * 11.8);
  EXPECT_LT(std::abs(ac), 5 * 11.8);
}

}  // namespace
}  // namespace prism
