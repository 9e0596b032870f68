#include "prism/core/random.h"

namespace prism {

uint64_t mix64(uint64_t x) {
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
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
