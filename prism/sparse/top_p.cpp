#include "prism/sparse/top_p.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <functional>

namespace prism {
namespace {

/// Sort key, larger for entries that come first: by probability, then by lower index.
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
  if (share >= 1) {  // keep all, whatever the rounding of the sum
    std::fill_n(kept.begin(), probabilities.size(), uint8_t{1});
    return;
  }
  keys.resize(probabilities.size());
  for (size_t i = 0; i < keys.size(); ++i) keys[i] = key_of(probabilities[i], i);
  // Entries before `first` are kept, those from `last` on are not. The range between is split until it is small enough
  // to sort. Usually a few entries hold the share, so the first split is near the front.
  constexpr std::ptrdiff_t kFirst = 32, kFew = 16;
  double before = 0;
  auto first = keys.begin(), last = keys.end();
  for (std::ptrdiff_t size = kFirst; last - first > kFew; size = (last - first) / 2) {
    const auto middle = first + std::min(size, (last - first) / 2);
    std::nth_element(first, middle, last, std::greater<>());
    double upper = 0;
    for (auto key = first; key != middle; ++key) upper += probability_of(*key);
    if (before + upper >= share) {
      last = middle;
      continue;
    }
    for (auto key = first; key != middle; ++key) kept[index_of(*key)] = 1;
    before += upper;
    first = middle;
  }
  std::sort(first, last, std::greater<>());
  for (auto key = first; key != last && before < share; ++key) {
    kept[index_of(*key)] = 1;
    before += probability_of(*key);
  }
}

void keep_top_p(const torch::Tensor& probabilities_N, double share, std::span<uint8_t> kept) {
  const auto probabilities = probabilities_N.to(torch::kFloat).contiguous();
  std::vector<uint64_t> keys;
  keep_top_p({probabilities.const_data_ptr<float>(), kept.size()}, share, kept, keys);
}

}  // namespace prism
