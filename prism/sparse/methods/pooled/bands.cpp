#include "prism/sparse/methods/pooled/bands.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "prism/core/error.h"

namespace prism {
namespace {

void check_dims(const char* name, int64_t dims, int64_t most) {
  PRISM_CHECK(dims >= 2 && dims % 2 == 0 && dims <= most, "spectral",
              "{}: expected an even number from 2 to {}, the number of rotary features; found {}; change it.", name,
              most, dims);
}

/// A band of the pairs [first, end) in order of speed, plus the features in `more`.
Band band_of(std::string name, const RotaryPairs& pairs, int64_t first, int64_t end, std::vector<int64_t> more) {
  const auto order = pairs.by_speed();
  for (int64_t i = first; i < end; ++i) {
    const auto& [one, other] = pairs.features[static_cast<size_t>(order[static_cast<size_t>(i)])];
    more.insert(more.end(), {one, other});
  }
  std::sort(more.begin(), more.end());
  return {std::move(name), std::move(more)};
}

void check_turns(const RotaryPairs& pairs) {
  PRISM_CHECK(pairs.size() > 0, "spectral", "expected at least one rotary pair; found none; use another selector.");
}

double root_mean(double squares, int64_t count) {
  return count == 0 ? 0 : std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

std::vector<Band> paper_bands(const RotaryPairs& pairs, int64_t high_dims, int64_t low_dims) {
  check_turns(pairs);
  const int64_t count = pairs.size();
  if (high_dims == 0) high_dims = std::max<int64_t>(1, count / 2) * 2;
  if (low_dims == 0) low_dims = std::max<int64_t>(1, 3 * count / 4) * 2;
  check_dims("high_dims", high_dims, 2 * count);
  check_dims("low_dims", low_dims, 2 * count);
  return {band_of("high", pairs, 0, high_dims / 2, {}),
          band_of("low", pairs, count - low_dims / 2, count, pairs.unturned())};
}

std::vector<Band> auto_bands(const RotaryPairs& pairs, int64_t block) {
  constexpr double kHeard = 0.35;
  check_turns(pairs);
  const int64_t count = pairs.size();
  const auto order = pairs.by_speed();
  const auto first_with = [&](double least) {
    const auto found = std::find_if(order.begin(), order.end(), [&](int64_t j) {
      return pooling_gain(pairs.angles[static_cast<size_t>(j)], block) >= least;
    });
    return static_cast<int64_t>(found - order.begin());
  };
  const int64_t high_end = std::clamp(first_with(kStillGain), int64_t{1}, count);
  const int64_t low_first = std::clamp(first_with(kHeard), int64_t{0}, count - 1);
  return {band_of("high", pairs, 0, high_end, {}), band_of("low", pairs, low_first, count, pairs.unturned())};
}

BandedBlocks::BandedBlocks(std::vector<Band> bands, int64_t head_dim)
    : bands_(std::move(bands)),
      head_dim_(head_dim),
      rows_(bands_.size()),
      energy_(bands_.size(), std::vector<double>{0.0}) {}

void BandedBlocks::append(const float* mean) {
  double whole = whole_energy_.back();
  for (int64_t i = 0; i < head_dim_; ++i) whole += double{mean[i]} * mean[i];
  whole_energy_.push_back(whole);
  for (size_t band = 0; band < bands_.size(); ++band) {
    double energy = energy_[band].back();
    for (const int64_t feature : bands_[band].features) {
      rows_[band].push_back(mean[feature]);
      energy += double{mean[feature]} * mean[feature];
    }
    energy_[band].push_back(energy);
  }
}

void BandedBlocks::pop() {
  PRISM_ASSERT(blocks() > 0, "selector", "no block to remove");
  whole_energy_.pop_back();
  for (size_t band = 0; band < bands_.size(); ++band) {
    rows_[band].resize(rows_[band].size() - bands_[band].features.size());
    energy_[band].pop_back();
  }
}

double BandedBlocks::rms(size_t band, int64_t blocks) const {
  return root_mean(energy_[band][static_cast<size_t>(blocks)], blocks * band_width(band));
}

double BandedBlocks::rms(int64_t blocks) const {
  return root_mean(whole_energy_[static_cast<size_t>(blocks)], blocks * head_dim_);
}

}  // namespace prism
