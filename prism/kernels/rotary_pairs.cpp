#include "prism/kernels/rotary_pairs.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "prism/core/error.h"

namespace prism {
namespace {

/// @param feature  feature(j, i) is the first (i = 0) or second (i = 1) feature of pair j.
template <class Feature>
RotaryPairs pairs_of(int64_t head_dim, std::span<const double> angles, Feature feature) {
  const auto count = static_cast<int64_t>(angles.size());
  PRISM_CHECK(2 * count <= head_dim, "rotary",
              "expected at most {} angles for heads of width {}; found {}; leave out the rest.", head_dim / 2, head_dim,
              count);
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

std::vector<int64_t> RotaryPairs::by_speed() const {
  std::vector<int64_t> order(angles.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) {
    return std::abs(angles[static_cast<size_t>(a)]) > std::abs(angles[static_cast<size_t>(b)]);
  });
  return order;
}

std::vector<double> multi_axis_angles(std::span<const double> angles, const AxisSections& sections,
                                      std::span<const double> steps) {
  const auto& counts = sections.pairs;
  const int64_t sum = std::accumulate(counts.begin(), counts.end(), int64_t{0});
  PRISM_CHECK(
      !counts.empty() && *std::min_element(counts.begin(), counts.end()) >= 0 &&
          sum == static_cast<int64_t>(angles.size()) && steps.size() == counts.size(),
      "rotary",
      "expected sections that add up to {} pairs and one step per section; found a sum of {} in {} sections and "
      "{} steps; change the sections.",
      angles.size(), sum, counts.size(), steps.size());
  std::vector<double> turned;
  const auto axes = static_cast<int64_t>(counts.size());
  int64_t end = counts[0];
  for (int64_t j = 0, axis = 0; j < sum; ++j) {
    if (sections.interleaved) {
      axis = j < axes * counts[static_cast<size_t>(j % axes)] ? j % axes : 0;
    } else {
      while (j >= end) end += counts[static_cast<size_t>(++axis)];
    }
    turned.push_back(angles[static_cast<size_t>(j)] * steps[static_cast<size_t>(axis)]);
  }
  return turned;
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
