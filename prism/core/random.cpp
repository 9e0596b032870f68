#include "prism/core/random.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace prism {

uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t hash_bytes(std::span<const std::byte> bytes) {
  constexpr size_t kChains = 4, kWord = sizeof(uint64_t);
  const auto word_at = [&](size_t at, size_t size) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, size);
    return word;
  };
  std::array<uint64_t, kChains> chains = {1, 2, 3, 4};
  size_t at = 0;
  for (; at + kChains * kWord <= bytes.size(); at += kChains * kWord)
    for (size_t i = 0; i < kChains; ++i) chains[i] = mix64(chains[i] + word_at(at + i * kWord, kWord));
  for (; at < bytes.size(); at += kWord) chains[0] = mix64(chains[0] + word_at(at, std::min(kWord, bytes.size() - at)));
  uint64_t hash = bytes.size();
  for (const uint64_t chain : chains) hash = mix64(hash + chain);
  return hash;
}

Random::Random(uint64_t seed, uint64_t stream)
    : key_(mix64(mix64(seed + 0x9E3779B97F4A7C15u) ^ mix64(stream + 0xD1B54A32D192ED03u))) {}

uint64_t Random::below(uint64_t bound) {
  const uint64_t unbiased_end = UINT64_MAX - UINT64_MAX % bound;
  uint64_t draw = next();
  while (draw >= unbiased_end) draw = next();
  return draw % bound;
}

}  // namespace prism
