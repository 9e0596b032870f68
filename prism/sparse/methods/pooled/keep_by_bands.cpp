#include "prism/sparse/methods/pooled/keep_by_bands.h"

#include <algorithm>
#include <cmath>

#include "prism/kernels/rows/rows.h"
#include "prism/sparse/top_p.h"

namespace prism {
namespace {

constexpr double kLargestScale = 2e38;  ///< kernels multiply it by log2(e), in float32

float dot(const float* a, const float* b, int64_t count) {
  float sum = 0;
  for (int64_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// The softmax of scale x, in place; the portable version of the kernel.
void soften_plainly(float scale, std::span<float> x) {
  const float largest = *std::max_element(x.begin(), x.end());
  double sum = 0;
  for (float& value : x) sum += value = std::exp(scale * (value - largest));
  const auto inverse = static_cast<float>(1 / sum);
  for (float& value : x) value *= inverse;
}

}  // namespace

void keep_by_bands(const PooledRow& row, std::span<const double> scales, std::span<const double> shares,
                   std::span<uint8_t> kept, RowScratch& scratch) {
  const BandedBlocks& keys = row.keys;
  scratch.weights.resize(static_cast<size_t>(row.visible));
  const auto* kernels = rows::kernels_of(current_isa());
  for (size_t band = 0; band < keys.bands(); ++band) {
    const int64_t width = keys.band_width(band);
    const auto scale = static_cast<float>(std::min(kLargestScale, scales[band]));
    const float *query = row.queries.row(band, row.row), *key = keys.row(band, 0);
    if (kernels != nullptr) {
      rows::Projection scores;
      scores.inner = scores.w_stride = width;
      scores.x_rows = 1;
      scores.x = query;
      scores.w = key;
      scores.y = scratch.weights.data();
      kernels->project(scores, 0, row.visible);
      kernels->softmax({row.visible, scale, scratch.weights.data()}, 0, 1);
    } else {
      for (int64_t v = 0; v < row.visible; ++v)
        scratch.weights[static_cast<size_t>(v)] = dot(query, key + v * width, width);
      soften_plainly(scale, scratch.weights);
    }
    keep_top_p(scratch.weights, shares[band], kept, scratch.keys);
  }
}

}  // namespace prism
