#include "prism/sparse/rotary_pairs.h"

#include <cmath>

#include "prism/core/error.h"

namespace prism {
namespace {

/// @param feature  says which feature is the first (0) or second (1) of pair j.
template <class Feature>
RotaryPairs pairs_of(int64_t head_dim, std::span<const double> angles, Feature feature) {
  const auto count = static_cast<int64_t>(angles.size());
  PRISM_CHECK(2 * count <= head_dim, "rotary", "expected at most {} angles for heads {} wide; found {}.", head_dim / 2,
              head_dim, count);
  RotaryPairs pairs{head_dim, {}, {angles.begin(), angles.end()}};
  for (int64_t j = 0; j < count; ++j) pairs.features.emplace_back(feature(j, 0), feature(j, 1));
  return pairs;
}

}  // namespace

std::vector<int64_t> RotaryPairs::unturned() const {
  std::vector<bool> turns(static_cast<size_t>(head_dim));
  for (const auto& [first, second] : features)
    turns[static_cast<size_t>(first)] = turns[static_cast<size_t>(second)] = true;
  std::vector<int64_t> found;
  for (int64_t i = 0; i < head_dim; ++i)
    if (!turns[static_cast<size_t>(i)]) found.push_back(i);
  return found;
}

RotaryPairs half_split_pairs(int64_t head_dim, std::span<const double> angles) {
  const auto half = static_cast<int64_t>(angles.size());
  return pairs_of(head_dim, angles, [half](int64_t j, int64_t side) { return j + side * half; });
}

RotaryPairs interleaved_pairs(int64_t head_dim, std::span<const double> angles) {
  return pairs_of(head_dim, angles, [](int64_t j, int64_t side) { return 2 * j + side; });
}

double pooling_gain(double angle, int64_t block) {
  const double half = angle / 2, below = static_cast<double>(block) * std::sin(half);
  return below == 0 ? 1 : std::abs(std::sin(static_cast<double>(block) * half) / below);
}

}  // namespace prism
