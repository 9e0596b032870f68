// Bands: the spectral selector splits a head's features by how fast they turn.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/kernels/rotary_pairs.h"

namespace prism {

struct Band {
  std::string name;
  std::vector<int64_t> features;  ///< ascending
};

/// The paper's two bands of whole pairs: `high` has the fastest high_dims / 2 pairs; `low` has the slowest low_dims / 2
/// pairs and the features that do not turn. The bands may overlap.
///
/// With head_dim 128, high_dims 64 and low_dims 96 they are pairs 0 to 31 and 16 to 63. The paper's "first 64" and
/// "last 96 dimensions" count the features of these pairs; they are not slices of the vector. Source: arXiv 2602.08426,
/// section 4.1.
///
/// @param high_dims, low_dims  even; 0: half and three quarters of the rotary features, as in the paper.
/// @throws InputError for odd numbers, or more features than turn.
std::vector<Band> paper_bands(const RotaryPairs& pairs, int64_t high_dims = 0, int64_t low_dims = 0);

/// A pair with at least this pooling gain counts as not turning.
inline constexpr double kStillGain = 0.999;

/// The same two bands, bounded by each pair's pooling_gain(): `high` ends before the pair whose gain reaches 0.999;
/// `low` starts at the pair whose gain reaches 0.35 and includes the features that do not turn. With base 10^6, blocks
/// of 128 and head_dim 128 these are the paper's bands, pairs 0 to 31 and 16 to 63. Other bases, block sizes and scaled
/// positions move them. Each band has at least one pair.
std::vector<Band> auto_bands(const RotaryPairs& pairs, int64_t block);

/// Pooled blocks of one head's queries or keys, stored by band.
class BandedBlocks {
 public:
  BandedBlocks(std::vector<Band> bands, int64_t head_dim);

  /// Appends a block. @param mean  [head_dim] mean of the block's tokens.
  void append(const float* mean);
  /// Removes the last block, e.g. a partial one that has grown.
  void pop();

  int64_t blocks() const { return static_cast<int64_t>(whole_energy_.size()) - 1; }
  size_t bands() const { return bands_.size(); }
  int64_t band_width(size_t band) const { return static_cast<int64_t>(bands_[band].features.size()); }
  int64_t head_dim() const { return head_dim_; }
  /// The block's features in one band, contiguous.
  const float* row(size_t band, int64_t block) const { return rows_[band].data() + block * band_width(band); }
  /// Returns true if all blocks are finite. A block that is not makes all later sums non-finite.
  bool is_finite() const { return std::isfinite(whole_energy_.back()); }
  /// Root mean square over the first `blocks` blocks and the features of the band, or over all features.
  double rms(size_t band, int64_t blocks) const;
  double rms(int64_t blocks) const;

 private:
  std::vector<Band> bands_;
  int64_t head_dim_;
  std::vector<std::vector<float>> rows_;      ///< features of each band
  std::vector<std::vector<double>> energy_;   ///< of each band: sum of squares over the blocks before each block
  std::vector<double> whole_energy_ = {0.0};  ///< the same over all features
};

}  // namespace prism
