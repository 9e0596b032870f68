#include "prism/analysis/spectrum.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>

#include "prism/core/error.h"
#include "prism/sparse/head_by_head.h"
#include "prism/sparse/methods/pooled/bands.h"

namespace prism {
namespace {

/// Queries whose scores are computed at a time.
constexpr int64_t kRows = 256;

/// Mean square of each feature. [D] float64
torch::Tensor mean_squares(const torch::Tensor& rows) {
  return rows.to(torch::kDouble).square().mean(0);
}

/// Mean squares of queries and keys, for tokens and for pooled blocks.
struct FeatureEnergies {
  torch::Tensor q_D, q_pooled_D, k_D, k_pooled_D;

  BandEnergy over(const std::vector<int64_t>& features) const {
    if (features.empty()) return {};
    const auto index = torch::tensor(features, torch::kLong);
    const auto rms = [&](const torch::Tensor& squares_D) {
      return std::sqrt(squares_D.index_select(0, index).mean().item<double>());
    };
    return {rms(q_D), rms(q_pooled_D), rms(k_D), rms(k_pooled_D)};
  }
};

std::string zone_of(double angle, int64_t block) {
  if (static_cast<double>(block) * std::abs(angle) >= 2 * std::numbers::pi) return "dead";
  return pooling_gain(angle, block) >= kStillGain ? "semantic" : "transition";
}

}  // namespace

const ZoneEnergy& HeadSpectrum::zone(const std::string& name) const {
  const auto found = std::find_if(zones.begin(), zones.end(), [&](const ZoneEnergy& z) { return z.zone == name; });
  PRISM_ASSERT(found != zones.end(), "spectrum", "no zone {}", name);
  return *found;
}

HeadSpectrum measure_spectrum(const torch::Tensor& q_TD, const torch::Tensor& k_SD, const RotaryPairs& pairs,
                              int64_t block) {
  const torch::NoGradGuard no_gradients;
  PRISM_CHECK(q_TD.dim() == 2 && k_SD.dim() == 2 && q_TD.numel() > 0 && k_SD.numel() > 0 &&
                  q_TD.size(1) == pairs.head_dim && k_SD.size(1) == pairs.head_dim && block > 0,
              "spectrum",
              "expected queries and keys [tokens, {}] and blocks of at least a token; found {}, {} and {}; pass the "
              "rotated queries and keys of one head.",
              pairs.head_dim, c10::str(q_TD.sizes()), c10::str(k_SD.sizes()), block);
  const auto q = q_TD.to(torch::kFloat), k = k_SD.to(torch::kFloat);
  const FeatureEnergies energies{mean_squares(q),
                                 mean_squares(block_means(q, block, std::max<int64_t>(0, k.size(0) - q.size(0)))),
                                 mean_squares(k), mean_squares(block_means(k, block))};
  HeadSpectrum spectrum;
  for (const char* zone : kZones) {
    std::vector<int64_t> features;
    int64_t count = 0;
    for (size_t j = 0; j < pairs.angles.size(); ++j) {
      if (zone_of(pairs.angles[j], block) != zone) continue;
      ++count;
      features.insert(features.end(), {pairs.features[j].first, pairs.features[j].second});
    }
    const bool full = std::string(zone) == "full";
    spectrum.zones.push_back(
        {zone, full ? pairs.size() : count, energies.over(full ? all_features(pairs.head_dim) : features)});
  }
  for (int64_t j = 0; j < pairs.size(); ++j) {
    const auto at = static_cast<size_t>(j);
    spectrum.pairs.push_back({j, pairs.angles[at], pooling_gain(pairs.angles[at], block),
                              energies.over({pairs.features[at].first, pairs.features[at].second})});
  }
  return spectrum;
}

std::vector<int64_t> all_features(int64_t head_dim) {
  std::vector<int64_t> features(static_cast<size_t>(head_dim));
  std::iota(features.begin(), features.end(), 0);
  return features;
}

int64_t tokens_of_cell(int64_t tokens, int64_t cells) {
  return (tokens + cells - 1) / cells;
}

torch::Tensor band_attention(const torch::Tensor& q_TD, const torch::Tensor& k_SD, const std::vector<int64_t>& features,
                             double scale, int64_t cells) {
  const torch::NoGradGuard no_gradients;
  const int64_t queries = q_TD.size(0), tokens = k_SD.size(0), past = tokens - queries;
  PRISM_CHECK(q_TD.size(1) == k_SD.size(1) && queries > 0 && past >= 0 && cells > 0 && !features.empty(), "spectrum",
              "expected queries and at least as many keys of the same width, cells and features; found {}, {}, {} and "
              "{}; pass those of one head.",
              c10::str(q_TD.sizes()), c10::str(k_SD.sizes()), cells, features.size());
  const auto index = torch::tensor(features, torch::kLong);
  const auto q = q_TD.to(torch::kFloat).index_select(1, index), k = k_SD.to(torch::kFloat).index_select(1, index);
  const int64_t size = tokens_of_cell(tokens, cells), count = (tokens + size - 1) / size;
  const auto cell_S = at::arange(tokens).div(size, "floor");
  const auto row_T = cell_S.slice(0, past) - past / size;
  auto sums = at::zeros({count - past / size, count}, torch::kDouble);
  for (int64_t first = 0; first < queries; first += kRows) {
    const int64_t end = std::min(queries, first + kRows), keys = past + end;
    auto scores = at::mm(q.slice(0, first, end), k.slice(0, 0, keys).t()).mul_(scale);
    scores.masked_fill_(at::arange(keys).unsqueeze(0) > at::arange(past + first, keys).unsqueeze(1),
                        -std::numeric_limits<float>::infinity());
    const auto shares = at::zeros({end - first, count}, torch::kDouble)
                            .index_add(1, cell_S.slice(0, 0, keys), scores.softmax(-1).to(torch::kDouble));
    sums.index_add_(0, row_T.slice(0, first, end), shares);
  }
  return sums / at::bincount(row_T).to(torch::kDouble).unsqueeze(1);
}

}  // namespace prism
