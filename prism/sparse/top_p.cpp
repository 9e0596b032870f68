#include "prism/sparse/top_p.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>

namespace prism {
namespace {

/// A number that is larger where an entry comes first: by its probability, then by its index, the lower first.
uint64_t key_of(float probability, size_t index) {
  return uint64_t{std::bit_cast<uint32_t>(probability)} << 32 | (0xFFFFFFFFu - static_cast<uint32_t>(index));
}

size_t index_of(uint64_t key) {
  return 0xFFFFFFFFu - static_cast<uint32_t>(key);
}

float probability_of(uint64_t key) {
  return std::bit_cast<float>(static_cast<uint32_t>(key >> 32));
}

}  // namespace

void keep_top_p(std::span<const float> probabilities, double share, std::span<uint8_t> kept,
                std::vector<uint64_t>& keys) {
  if (share >= 1) {  // rounding must not leave anything out
    std::fill_n(kept.begin(), probabilities.size(), uint8_t{1});
    return;
  }
  keys.resize(probabilities.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = key_of(probabilities[i], i);
  // Mostly a few hold the share: the largest ones are sorted, then twice as many as before.
  constexpr size_t kFirst = 32;
  double before = 0;
  for (size_t sorted = 0, end = 0; sorted < keys.size() && before < share; sorted = end) {
    end = std::min(keys.size(), std::max(kFirst, 3 * sorted));
    const auto first = keys.begin() + static_cast<std::ptrdiff_t>(sorted);
    const auto last = keys.begin() + static_cast<std::ptrdiff_t>(end);
    if (last != keys.end()) std::nth_element(first, last, keys.end(), std::greater<>());
    std::sort(first, last, std::greater<>());
    for (auto key = first; key != last && before < share; ++key) {
      kept[index_of(*key)] = 1;
      before += probability_of(*key);
    }
  }
}

}  // namespace prism
