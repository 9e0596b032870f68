#include "prism/sparse/top_p.h"

#include <algorithm>
#include <numeric>

namespace prism {

void keep_top_p(std::span<const float> probabilities, double share, std::span<uint8_t> kept,
                std::vector<int32_t>& order) {
  if (share >= 1) {  // rounding must not leave anything out
    std::fill_n(kept.begin(), probabilities.size(), uint8_t{1});
    return;
  }
  order.resize(probabilities.size());
  std::iota(order.begin(), order.end(), 0);
  // The heap's top is the next one to keep: a part of the order is enough.
  const auto later = [&](int32_t a, int32_t b) {
    const float left = probabilities[static_cast<size_t>(a)], right = probabilities[static_cast<size_t>(b)];
    return left != right ? left < right : a > b;
  };
  std::make_heap(order.begin(), order.end(), later);
  double before = 0;
  for (auto end = order.end(); end != order.begin() && before < share; --end) {
    std::pop_heap(order.begin(), end, later);
    const auto index = static_cast<size_t>(*(end - 1));
    kept[index] = 1;
    before += probabilities[index];
  }
}

}  // namespace prism
