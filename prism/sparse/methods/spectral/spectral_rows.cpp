#include "prism/sparse/methods/spectral/spectral_rows.h"

#include <algorithm>
#include <cmath>

#include "prism/kernels/rows/rows.h"
#include "prism/sparse/top_p.h"

namespace prism {
namespace {

float dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// Portable version: scores_v = scale query . key_v, and their softmax.
void soften_plainly(const rows::Dots& dots, std::span<float> scores) {
  for (size_t v = 0; v < scores.size(); ++v)
    scores[v] = dots.scale * dot(dots.x, dots.y + static_cast<int64_t>(v) * dots.width, dots.width);
  const float largest = *std::max_element(scores.begin(), scores.end());
  double sum = 0;
  for (float& score : scores) sum += score = std::exp(score - largest);
  const auto scale = static_cast<float>(1 / sum);
  for (float& score : scores) score *= scale;
}

}  // namespace

double band_temperature(const BandedBlocks& queries, int64_t query_blocks, const BandedBlocks& keys, int64_t key_blocks,
                        size_t band) {
  constexpr double kLeast = 1e-6;
  const double share = static_cast<double>(keys.band_width(band)) / static_cast<double>(keys.head_dim());
  return std::sqrt(share) * (queries.rms(band, query_blocks) / std::max(queries.rms(query_blocks), kLeast)) *
         (keys.rms(band, key_blocks) / std::max(keys.rms(key_blocks), kLeast));
}

void keep_by_bands(const BandedBlocks& queries, int64_t row, const BandedBlocks& keys, int64_t visible,
                   std::span<const double> temperatures, std::span<const double> shares, std::span<uint8_t> kept,
                   RowScratch& scratch) {
  scratch.weights.resize(static_cast<size_t>(visible));
  const auto* kernels = rows::kernels_of(current_isa());
  for (size_t band = 0; band < keys.bands(); ++band) {
    const int64_t width = keys.band_width(band);
    const double tau = temperatures[band] == 0 ? 1 : temperatures[band];
    const auto scale = static_cast<float>(1 / (std::sqrt(static_cast<double>(width)) * tau));
    const rows::Dots dots{width, scale, queries.row(band, row), keys.row(band, 0), scratch.weights.data()};
    if (kernels != nullptr) {
      kernels->dots(dots, 0, visible);
      kernels->softmax({visible, scratch.weights.data()}, 0, 1);
    } else {
      soften_plainly(dots, scratch.weights);
    }
    keep_top_p(scratch.weights, shares[band], kept, scratch.keys);
  }
}

}  // namespace prism
