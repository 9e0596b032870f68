// The spectrum of a head: the energy of its queries and keys in fast and slow rotary pairs, before and after pooling.
//
//   const HeadSpectrum spectrum = measure_spectrum(q_TD, k_TD, rotary_pairs(config.rotary, config.head_dim), 128);
//   spectrum.zone("dead").q_pooled;
//
// Source: arXiv 2602.08426, sections 3.2 and 3.3.
#pragma once

#include <torch/types.h>

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "prism/kernels/rotary_pairs.h"

namespace prism {

/// Root mean squares of queries and keys over a set of features, for tokens and for means over blocks of tokens.
struct BandEnergy {
  double q = 0, q_pooled = 0, k = 0, k_pooled = 0;
  template <class Visitor>
  void visit(Visitor& v) {
    v("q", q, "root mean square of the queries' features");
    v("q_pooled", q_pooled, "the same for means over blocks");
    v("k", k, "root mean square of the keys' features");
    v("k_pooled", k_pooled, "the same for means over blocks");
  }
};

struct PairEnergy {
  int64_t pair = 0;
  double angle = 0, gain = 0;
  BandEnergy energy;
  template <class Visitor>
  void visit(Visitor& v) {
    v("pair", pair, "number of the pair, from 0; in a plain encoding, the fastest comes first");
    v("angle", angle, "radians that it turns per token");
    v("gain", gain, "lambda: share of a turning vector's length that the mean over a block keeps");
    energy.visit(v);
  }
};

struct ZoneEnergy {
  std::string zone;
  int64_t pairs = 0;
  BandEnergy energy;
  template <class Visitor>
  void visit(Visitor& v) {
    v("zone", zone, "dead, transition, semantic or full");
    v("pairs", pairs, "number of pairs in the zone");
    energy.visit(v);
  }
};

/// The zones from fast to slow, then `full`, all features.
inline constexpr std::array<const char*, 4> kZones = {"dead", "transition", "semantic", "full"};

struct HeadSpectrum {
  std::vector<PairEnergy> pairs;
  std::vector<ZoneEnergy> zones;  ///< one per kZones, including zones without a pair

  /// @throws InternalError for an unknown name.
  const ZoneEnergy& zone(const std::string& name) const;
};

/// Zones are defined by what pooling over B = `block` tokens does to a pair that turns by t radians per token:
///
///   dead B t >= 2 pi (at least a whole turn),   semantic lambda >= 0.999,   transition all between
///
/// `full` is all features, including those that do not rotate.
///
/// @param q_TD, k_SD  after the rotary encoding; any floating type. The last block may be short; its mean is over the
///                    tokens it has.
/// @throws InputError for shapes that do not fit the pairs.
HeadSpectrum measure_spectrum(const torch::Tensor& q_TD, const torch::Tensor& k_SD, const RotaryPairs& pairs,
                              int64_t block);

/// All features of a head, 0 to head_dim - 1.
std::vector<int64_t> all_features(int64_t head_dim);

/// Tokens per cell if `tokens` are shown in at most `cells` cells.
int64_t tokens_of_cell(int64_t tokens, int64_t cells);

/// Mean attention between cells of tokens, computed from some features of a head alone:
///
///   softmax over s <= t of  scale sum_i q_(t,i) k_(s,i),  i in features,
///
/// summed over the keys of a cell and averaged over the queries of a cell.
/// @param q_TD      T <= S queries, at the last T positions of k_SD.
/// @param features  the features of the band; all_features() gives the head's attention.
/// @param cells     maximum number of cells; each has tokens_of_cell() of the S tokens, the last may have fewer.
/// @return          [M, N] float64, rows add up to 1: N cells of keys, at most `cells`, and the M of them with queries.
torch::Tensor band_attention(const torch::Tensor& q_TD, const torch::Tensor& k_SD, const std::vector<int64_t>& features,
                             double scale, int64_t cells);

}  // namespace prism
