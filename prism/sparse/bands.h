// Bands of a head's features, by how fast they turn: what the spectral selector looks at apart.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/sparse/rotary_pairs.h"

namespace prism {

struct Band {
  std::string name;
  std::vector<int64_t> features;  ///< ascending
};

/// The paper's two, of whole pairs: `high`, the fastest high_dims / 2 pairs, and `low`, the slowest low_dims / 2 with
/// the features that do not turn. They may overlap.
///
/// For a head 128 wide with 64 and 96: pairs 0 to 31 and 16 to 63, which is what the paper's "first 64" and "last 96
/// dimensions" count, and no slice of the vector. Source: arXiv 2602.08426, section 4.1.
///
/// @param high_dims, low_dims  even; 0: half and three quarters of what turns, the paper's share.
/// @throws InputError for odd ones, and for more than there is.
std::vector<Band> paper_bands(const RotaryPairs& pairs, int64_t high_dims = 0, int64_t low_dims = 0);

/// A pair of which pooling leaves this much is as good as still.
inline constexpr double kStillGain = 0.999;

/// The same two by what pooling leaves of each pair (pooling_gain): `high` are the pairs before the one of which it
/// leaves 0.999, `low` those from the one of which it leaves 0.35 on, with the features that do not turn. For a base of
/// 10^6 and blocks of 128 of a head 128 wide these are the paper's, pairs 0 to 31 and 16 to 63; other bases, blocks and
/// scaled positions move them. Each has at least one pair.
std::vector<Band> auto_bands(const RotaryPairs& pairs, int64_t block);

/// Pooled blocks of one head with their bands apart, of queries or of keys; more can be appended.
class BandedBlocks {
 public:
  BandedBlocks(std::vector<Band> bands, int64_t head_dim);

  /// @param mean  of the block's tokens, head_dim features.
  void append(const float* mean);
  /// Takes the last block away again: one that was not whole and has grown.
  void pop();

  int64_t blocks() const { return static_cast<int64_t>(whole_energy_.size()) - 1; }
  size_t bands() const { return bands_.size(); }
  int64_t band_width(size_t band) const { return static_cast<int64_t>(bands_[band].features.size()); }
  int64_t head_dim() const { return head_dim_; }
  /// The block's features of one band, side by side.
  const float* row(size_t band, int64_t block) const { return rows_[band].data() + block * band_width(band); }
  /// Whether all blocks are; one that is not makes all later sums so.
  bool is_finite() const { return std::isfinite(whole_energy_.back()); }
  /// Root mean square over the first `blocks` blocks and the features of the band, or all features.
  double rms(size_t band, int64_t blocks) const;
  double rms(int64_t blocks) const;

 private:
  std::vector<Band> bands_;
  int64_t head_dim_;
  std::vector<std::vector<float>> rows_;      ///< of each band
  std::vector<std::vector<double>> energy_;   ///< of each band, before each block: sums of squares
  std::vector<double> whole_energy_ = {0.0};  ///< of all features
};

}  // namespace prism
