// Seeded random numbers that are the same on every machine. Two integers are enough to save and restore the state.
//
//   Random random(seed, /*stream=*/kShuffle);  double u = random.uniform();
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace prism {

/// Bijective 64-bit mixer (the finaliser of SplitMix64, Steele et al. 2014).
uint64_t mix64(uint64_t x);

/// Hash of a sequence of bytes: four interleaved chains of mix64 over words of 8 bytes. Not for hostile data.
uint64_t hash_bytes(std::span<const std::byte> bytes);

/// Counter-based generator: the n-th draw is a function of (seed, stream, n) alone, so its state is n.
class Random {
 public:
  explicit Random(uint64_t seed, uint64_t stream = 0);

  /// 64 uniform bits.
  uint64_t next() { return mix64(key_ + 0x9E3779B97F4A7C15u * ++draws_); }
  /// Uniform in [0, 1), 53 bits.
  double uniform() { return static_cast<double>(next() >> 11) * 0x1.0p-53; }
  /// Uniform in [0, bound), bound at least 1, without modulo bias.
  uint64_t below(uint64_t bound);

 private:
  uint64_t key_;
  uint64_t draws_ = 0;
};

}  // namespace prism
